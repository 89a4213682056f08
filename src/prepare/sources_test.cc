#include "prepare/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "dataset/tar.h"
#include "prepare/labels.h"
#include "prepare/prepare.h"
#include "prepare/preview.h"
#include "prepare/testing/pictures.h"

namespace weir::prepare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_pictures::EncodedNoise;
using testing_pictures::MakeFeed;
using testing_pictures::ReadAll;

class SourcesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "sources_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& contents) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << contents;
  }
  // "source label first-byte-or-reason" of each input.
  std::vector<std::string> Read(SourceOptions options) {
    sources_ = Sources::Open(std::move(options)).value();
    const Feed feed = sources_->MakeFeed();
    std::vector<std::string> lines;
    for (int64_t i = 0; i < feed.count; ++i) {
      const FedPicture picture = feed.get(i);
      lines.push_back(picture.source + " " + (picture.label ? std::to_string(*picture.label) : "-") + " " +
                      (picture.encoded ? std::string(picture.encoded->text().substr(0, 1))
                                       : std::string(ToString(picture.encoded.error().reason))));
    }
    classes_ = feed.classes;
    return lines;
  }
  Error Refusal(SourceOptions options) { return Sources::Open(std::move(options)).error(); }
  static std::string Member(const std::string& name, const std::string& contents) {
    const auto size = static_cast<int64_t>(contents.size());
    return dataset::FormatTarHeader(name, size) + contents + dataset::TarPadding(size);
  }

  std::string folder_;
  std::unique_ptr<Sources> sources_;
  std::vector<std::string> classes_;
};

TEST_F(SourcesTest, FoldersGiveTheirPicturesInByteOrder) {
  Write("in/b/2.jpg", "2");
  Write("in/a/1.jpg", "1");
  Write("in/0.png", "0");
  Write("in/.hidden.jpg", "x");
  EXPECT_THAT(Read({.paths = {Path("in")}}), ElementsAre("0.png - 0", "a/1.jpg - 1", "b/2.jpg - 2"));
  EXPECT_EQ(sources_->MakeFeed().skipped, 1);
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = "folders"}),
              ElementsAre("0.png - 0", "a/1.jpg 0 1", "b/2.jpg 1 2"));
  EXPECT_THAT(classes_, ElementsAre("a", "b"));
}

TEST_F(SourcesTest, AListNamesFilesAndTheirLabels) {
  Write("1.jpg", "1");
  Write("list", Path("1.jpg") + "\tdog\n\n" + Path("none.jpg") + "\tcat\r\n" + Path("1.jpg"));
  const auto read = Read({.lists = {Path("list")}});
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0], Path("1.jpg") + " 1 1");
  EXPECT_EQ(read[1], Path("none.jpg") + " 0 missing");
  EXPECT_EQ(read[2], Path("1.jpg") + " - 1");
  EXPECT_THAT(classes_, ElementsAre("cat", "dog"));
  Write("numbers", Path("1.jpg") + "\t12\n");
  EXPECT_EQ(Read({.lists = {Path("numbers")}})[0], Path("1.jpg") + " 12 1");
  EXPECT_TRUE(classes_.empty());
}

TEST_F(SourcesTest, ACsvFileGivesLabels) {
  Write("in/a.jpg", "a");
  Write("in/sub/b, c.jpg", "b");
  Write("labels.csv", "file,size,label\na.jpg,1,\"tiger, big\"\n\"b, c.jpg\",2,\"a \"\"cat\"\"\"\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}),
              ElementsAre("a.jpg 1 a", "sub/b, c.jpg 0 b"));
  EXPECT_THAT(classes_, ElementsAre("a \"cat\"", "tiger, big"));
  Write("labels.csv", "elsewhere.jpg,1\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("names none of the pictures"));
  Write("labels.csv", "a.jpg,1\nb\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message, HasSubstr("line 2"));
}

TEST_F(SourcesTest, WhatIsNoLabelAndASecondLabelOfANameAreRefusedWithTheirLine) {
  Write("in/a.jpg", "a");
  for (const char* label : {"-1", "2147483648", "99999999999999999999"}) {
    Write("labels.csv", fmt::format("name,label\na.jpg,{}\n", label));
    const Error error = Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")});
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message, HasSubstr(fmt::format("line 2: {} is no label", label)));
    Write("list", fmt::format("{}\t{}\n", Path("in/a.jpg"), label));
    EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("line 1"));
  }
  Write("labels.csv", "a.jpg,2147483647\nb.jpg,1\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}), ElementsAre("a.jpg 2147483647 a"));
  Write("labels.csv", "a.jpg,1\nb.jpg,1\na.jpg,2\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 3: a.jpg has a label already, of line 1"));
}

TEST_F(SourcesTest, SourcesWithoutAPictureAreRefused) {
  Write("in/notes.txt", "no picture");
  const Error error = Refusal({.paths = {Path("in")}});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("no pictures in " + Path("in") + " (1 passed over)"));
  Write("list", "\n");
  EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("no pictures in " + Path("list")));
}

TEST_F(SourcesTest, TarArchivesGiveTheirPicturesWithTheLabelsBesideThem) {
  Write("in.tar", Member("x/0.cls", "4") + Member("x/0.jpg", "A") + Member("x/0.json", "{}") +
                      Member("x/1.png", "B") + Member("x/1.cls", "2\n") + Member("x/2.jpg", "C") +
                      std::string(1024, '\0'));
  EXPECT_THAT(Read({.paths = {Path("in.tar")}}),
              ElementsAre("in.tar/x/0.jpg 4 A", "in.tar/x/1.png 2 B", "in.tar/x/2.jpg - C"));
  EXPECT_TRUE(classes_.empty());
  Write("packed.tar.gz", "\x1f\x8b" + std::string(600, 'z'));
  const Error error = Refusal({.paths = {Path("packed.tar.gz")}});
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("uncompress it first"));
}

TEST_F(SourcesTest, ATarArchiveWithTwoMembersOfOneNameIsRefused) {
  const std::string sample = Member("x/0.jpg", "A") + Member("x/0.cls", "4");
  for (const std::string& again : {Member("x/0.jpg", "B"), Member("x/0.cls", "5")}) {
    Write("in.tar", sample + Member("x/1.jpg", "C") + again);
    const Error error = Refusal({.paths = {Path("in.tar")}});
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
    EXPECT_THAT(error.message, HasSubstr(again.starts_with("x/0.jpg") ? "2 members are named x/0.jpg"
                                                                      : "2 members are named x/0.cls"));
    EXPECT_THAT(error.message, HasSubstr("give each sample a name of its own"));
  }
  Write("in.tar", sample + Member("y/0.jpg", "B") + Member("x/0.json", "{}") + Member("x/0.json", "{}"));
  EXPECT_EQ(Read({.paths = {Path("in.tar")}}).size(), 2u);
}

TEST_F(SourcesTest, LabelsThatAreGivenReplaceThoseOfTheSources) {
  Write("in.tar", Member("x/0.cls", "4") + Member("x/0.jpg", "A") + Member("x/1.jpg", "B") +
                      Member("x/1.cls", "zebra") + std::string(1024, '\0'));
  Write("labels.csv", "0.jpg,cat\n1.jpg,dog\n");
  EXPECT_THAT(Read({.paths = {Path("in.tar")}, .labels = Path("labels.csv")}),
              ElementsAre("in.tar/x/0.jpg 0 A", "in.tar/x/1.jpg 1 B"));
  EXPECT_THAT(classes_, ElementsAre("cat", "dog"));

  const SteadyClock clock;
  ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path("set")}, clock, {}, {}));  // of classes even and odd
  for (const char* name :
       {"in/1\xff", "in/1\\xFF", "1\xff"}) {  // as it is, as the manifest has it, its last part
    Write("numbers.csv", std::string(name) + ",70\n");
    const auto read = Read({.paths = {Path("set")}, .labels = Path("numbers.csv")});
    EXPECT_THAT(read, Contains(HasSubstr("in/1\xff 70"))) << name;
  }
  EXPECT_TRUE(classes_.empty());
}

TEST_F(SourcesTest, AMarkOfByteOrderIsNoPartOfAName) {
  Write("in/a.jpg", "a");
  Write("labels.csv",
        "\xef\xbb\xbf"
        "file,other,label\r\na.jpg,1,7\r\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}), ElementsAre("a.jpg 7 a"));
  Write("list", "\xef\xbb\xbf" + Path("in/a.jpg") + "\r\n");
  EXPECT_THAT(Read({.lists = {Path("list")}}), ElementsAre(Path("in/a.jpg") + " - a"));
}

TEST_F(SourcesTest, ANameThatIsTooLongIsRefusedWithItsLine) {
  for (const size_t length : {size_t{70'000}, size_t{1'100'000}}) {
    Write("list", "a.jpg\n" + std::string(length, 'n') + "\nb.jpg\n");
    EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("line 2"));
  }
  Write("list", std::string(60'000, 'n'));
  EXPECT_EQ(Read({.lists = {Path("list")}}).size(), 1u);
}

TEST_F(SourcesTest, ATarMemberIsAPictureByAnyEndingThatAFileIsOneBy) {
  Write("in.tar", Member("0.JPG", "A") + Member("1.Jpg", "B") + Member("2.TIF", "C") + Member("3.jfif", "D") +
                      Member("4.WebP", "E") + Member("5.txt", "F") + Member("5.json", "{}"));
  EXPECT_EQ(Read({.paths = {Path("in.tar")}}).size(), 5u);
  EXPECT_EQ(sources_->MakeFeed().skipped, 1);
}

TEST_F(SourcesTest, PreparedSetsGiveTheirPicturesAndClasses) {
  const SteadyClock clock;
  for (const auto format :
       {dataset::SetFormat::kFiles, dataset::SetFormat::kTar, dataset::SetFormat::kTfrecord}) {
    const std::string name(ToString(format));
    ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path(name), .format = format}, clock, {}, {}));
    const auto read = Read({.paths = {Path(name)}});
    ASSERT_EQ(read.size(), 4u);
    EXPECT_THAT(read[1], HasSubstr(" 1 \xff"));
    EXPECT_THAT(classes_, ElementsAre("even", "odd"));
  }
  ASSERT_TRUE(PrepareSet(MakeFeed(2),
                         {.folder = Path("raw"),
                          .format = dataset::SetFormat::kRaw,
                          .geometry = dataset::Geometry{.resize = dataset::Size{8, 8}}},
                         clock, {}, {}));
  EXPECT_EQ(Refusal({.paths = {Path("raw")}}).code, ErrorCode::kUnsupported);
}

TEST_F(SourcesTest, AFolderThatChangesIsTold) {
  Write("in/a.jpg", "a");
  sources_ = Sources::Open({.paths = {Path("in")}}).value();
  const Feed feed = sources_->MakeFeed();
  EXPECT_TRUE(feed.check_unchanged());
  Write("in/b.jpg", "b");
  EXPECT_THAT(feed.check_unchanged().error().message, HasSubstr("held 1 pictures, and now hold 2"));
  std::filesystem::remove_all(Path("in"));
  EXPECT_EQ(feed.check_unchanged().error().code, ErrorCode::kIo);
  EXPECT_EQ(feed.get(0).encoded.error().reason, image::RejectReason::kVanished);
}

// A making that is gone on with makes again what has changed since it was broken off, and what follows it.
TEST_F(SourcesTest, AFileThatChangedIsMadeAgain) {
  const SteadyClock clock;
  for (int i = 0; i < 6; ++i)
    Write(fmt::format("in/{}.png", i), EncodedNoise(20, 20, static_cast<uint64_t>(i), true));
  Write("list", Path("in/0.png") + "\n" + Path("late.png") + "\n" + Path("in/1.png") + "\n");
  const Options options{
      .folder = Path("set"), .format = dataset::SetFormat::kTar, .workers = 1, .checkpoint_every = 0ms};
  const auto prepare = [&](const std::string& folder, int64_t stop_after) {
    std::stop_source stop;
    Options mine = options;
    mine.folder = Path(folder);
    const auto sources = Sources::Open({.paths = {Path("in")}, .lists = {Path("list")}}).value();
    return PrepareSet(sources->MakeFeed(), mine, clock, stop.get_token(), [&](const Progress& progress) {
      if (progress.done == stop_after) stop.request_stop();
    });
  };
  EXPECT_FALSE(prepare("set", 8));  // of nine
  EXPECT_EQ(prepare("set", 8)->begun_at, 8);
  std::filesystem::remove_all(Path("set"));

  EXPECT_FALSE(prepare("set", 8));
  Write("in/3.png", EncodedNoise(21, 20, 9, true));
  EXPECT_LE(prepare("set", -1)->begun_at, 3);
  EXPECT_EQ(prepare("whole", -1)->begun_at, 0);
  EXPECT_TRUE(ReadAll(Path("set")) == ReadAll(Path("whole")));
  std::filesystem::remove_all(Path("set"));

  EXPECT_FALSE(prepare("set", 8));
  Write("late.png", EncodedNoise(20, 20, 7, true));
  const auto summary = prepare("set", -1).value();
  EXPECT_LE(summary.begun_at, 7);
  EXPECT_TRUE(summary.rejected.empty());
}

TEST_F(SourcesTest, UrlsThatNobodyServesAreUnreachable) {
  // Port 1 of this machine: nothing listens there.
  Write("list", "http://127.0.0.1:1/a.jpg\nftp://127.0.0.1:1/a.jpg\n");
  EXPECT_THAT(Read({.lists = {Path("list")}, .fetch = {.retries = 0}}),
              ElementsAre("http://127.0.0.1:1/a.jpg - unreachable", "ftp://127.0.0.1:1/a.jpg - missing"));
}

TEST_F(SourcesTest, DescriptionsTellNameAndLabel) {
  Write("list", "a\t1\nb\t1\n");
  sources_ = Sources::Open({.lists = {Path("list")}}).value();
  const Feed feed = sources_->MakeFeed();
  EXPECT_NE(feed.describe(0), feed.describe(1));
  const std::string hash = HashOfInputs(feed);
  EXPECT_EQ(HashOfInputs(feed), hash);
  EXPECT_NE(HashOfInputs(Pick(feed, {1, 0})), hash);
  EXPECT_NE(HashOfInputs(Pick(feed, {0})), hash);
  EXPECT_EQ(Pick(feed, {1}).get(0).source, "b");
}

// A set holds the classes' names, too.
TEST_F(SourcesTest, AClassOfAnotherNameMakesOtherInputs) {
  const auto hash_with = [&](const std::string& name) {
    Write("list", "a\t" + name + "\nb\tdog\n");
    const auto sources = Sources::Open({.lists = {Path("list")}}).value();
    EXPECT_EQ(sources->MakeFeed().get(0).label, 0);
    return HashOfInputs(sources->MakeFeed());
  };
  EXPECT_EQ(hash_with("cat"), hash_with("cat"));
  EXPECT_NE(hash_with("cat"), hash_with("bird"));
}

std::vector<std::string> FieldsOf(std::string_view line) {
  CsvRecord record;
  EXPECT_EQ(record.Add(line), CsvRecord::State::kWhole) << line;
  return record.fields();
}

TEST(CsvRecord, QuotesHoldCommasAndQuotes) {
  EXPECT_EQ(FieldsOf(R"(a,"b,c","d""e",)"), (std::vector<std::string>{"a", "b,c", "d\"e", ""}));
  EXPECT_EQ(FieldsOf(""), std::vector<std::string>{""});
  EXPECT_EQ(FieldsOf("a,b\r"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(FieldsOf("a,\"b\"\r"), (std::vector<std::string>{"a", "b"}));
  for (const char* wrong : {R"(a"b)", R"("a"b)"})
    EXPECT_EQ(CsvRecord().Add(wrong), CsvRecord::State::kWrong) << wrong;
}

TEST(CsvRecord, QuotesHoldLineBreaks) {
  CsvRecord record;
  EXPECT_EQ(record.Add("\"a\r"), CsvRecord::State::kOpen);
  EXPECT_EQ(record.Add(""), CsvRecord::State::kOpen);
  EXPECT_EQ(record.Add("b\"\"c\",7"), CsvRecord::State::kWhole);
  EXPECT_EQ(record.fields(), (std::vector<std::string>{"a\r\n\nb\"c", "7"}));
  EXPECT_EQ(record.Add("d,e"), CsvRecord::State::kWhole);
  EXPECT_EQ(record.fields(), (std::vector<std::string>{"d", "e"}));
}

TEST_F(SourcesTest, ALabelFileMayHoldNamesWithLineBreaks) {
  Write("in/two\nlines.jpg", "a");
  Write("in/b.jpg", "b");
  Write("labels.csv", "name,label\n\"two\nlines.jpg\",\"the\nfirst\"\nb.jpg,second\n");
  EXPECT_THAT(Read({.paths = {Path("in")}, .labels = Path("labels.csv")}),
              ElementsAre("b.jpg 0 b", "two\nlines.jpg 1 a"));
  EXPECT_THAT(classes_, ElementsAre("second", "the\nfirst"));
  Write("labels.csv", "b.jpg,1\nc.jpg,\"open\nd.jpg,2\n");
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 2: a quote that opens here is not closed"));
  Write("labels.csv", "\"a\nb\",1\nc\n");  // the line where a record begins, not the number of records
  EXPECT_THAT(Refusal({.paths = {Path("in")}, .labels = Path("labels.csv")}).message,
              HasSubstr("line 3: wants"));
}

TEST_F(SourcesTest, PicturesWithoutALabelAndLabelsWithoutAPictureAreCounted) {
  for (const char* name : {"in/a.jpg", "in/b.jpg", "in/c\xff.jpg"}) Write(name, "x");
  Write("labels.csv", "none.jpg,1\na.jpg,1\nno more.jpg,2\n");
  sources_ = Sources::Open({.paths = {Path("in")}, .labels = Path("labels.csv")}).value();
  LabelReport report = ReportLabels(sources_->MakeFeed());
  EXPECT_TRUE(report.asked_for);
  EXPECT_EQ(report.labelled, 1);
  EXPECT_EQ(report.unlabelled, 2);
  EXPECT_THAT(report.unlabelled_examples, ElementsAre("b.jpg", "c\xff.jpg"));
  EXPECT_EQ(report.unused, 2);
  EXPECT_THAT(report.unused_examples, ElementsAre("none.jpg", "no more.jpg"));
  report = ReportLabels(Pick(sources_->MakeFeed(), {0}));
  EXPECT_EQ(report.unlabelled, 0);
  sources_ = Sources::Open({.paths = {Path("in")}}).value();
  EXPECT_FALSE(ReportLabels(sources_->MakeFeed()).asked_for);
}

TEST_F(SourcesTest, OtherLabelsAreAnotherArgument) {
  Write("in/a/a.jpg", "x");
  const auto arguments = [&](const std::string& labels) {
    const auto sources = Sources::Open({.paths = {Path("in")}, .labels = labels}).value();
    return DumpJson(sources->MakeFeed().arguments.ToJson());
  };
  Write("one.csv", "a.jpg,1\n");
  Write("same.csv", "a.jpg,1\n");
  Write("other.csv", "a.jpg,2\n");
  EXPECT_EQ(arguments(""), "{}");
  EXPECT_EQ(arguments("folders"), R"({"labels":"folders"})");
  EXPECT_EQ(arguments(Path("one.csv")), arguments(Path("same.csv")));
  EXPECT_NE(arguments(Path("one.csv")), arguments(Path("other.csv")));
}

TEST_F(SourcesTest, AListOfNamesThatEndWithZeroBytesIsRecognised) {
  Write("in/a\nb.jpg", "a");
  Write("in/tab\tname.jpg", "t");
  Write("list", Path("in/a\nb.jpg") + '\0' + Path("in/tab\tname.jpg") + '\0');
  EXPECT_THAT(Read({.lists = {Path("list")}}),
              ElementsAre(Path("in/a\nb.jpg") + " - a", Path("in/tab\tname.jpg") + " - t"));
  Write("list", Path("in/a\nb.jpg") + '\0' + Path("in/tab\tname.jpg"));  // the last without its end
  EXPECT_EQ(Read({.lists = {Path("list")}}).size(), 2u);
  Write("list", std::string("a.jpg\0\0b.jpg\0", 13));
  EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("name 2 is empty"));
  Write("list", std::string(70'000, '\n') + std::string("a\0b\n", 4));
  EXPECT_THAT(Refusal({.lists = {Path("list")}}).message, HasSubstr("line 70001: holds a zero byte"));
}

TEST_F(SourcesTest, FoldersOfListedNamesAreClassesOnlyWhereTheNameIsRelative) {
  Write("list", "./cat/1.jpg\ndog/2.jpg\n/abs/3.jpg\nhttp://127.0.0.1:1/x/4.jpg\n5.jpg\n");
  const auto read = Read({.lists = {Path("list")}, .labels = "folders", .fetch = {.retries = 0}});
  EXPECT_THAT(read, ElementsAre("./cat/1.jpg 0 missing", "dog/2.jpg 1 missing", "/abs/3.jpg - missing",
                                "http://127.0.0.1:1/x/4.jpg - unreachable", "5.jpg - missing"));
}

TEST_F(SourcesTest, StandardInputIsReadOnce) {
  EXPECT_THAT(Refusal({.lists = {"-"}, .labels = "-"}).message, HasSubstr("only once"));
}

TEST_F(SourcesTest, APipeNamedLikeAnArchiveIsAnErrorAndNoWait) {
  ASSERT_EQ(::mkfifo(Path("pipe.tar").c_str(), 0600), 0);
  EXPECT_THAT(Refusal({.paths = {Path("pipe.tar")}}).message, HasSubstr("not a regular file"));
}

// The manifest of a set that is made of a set has the names of the pictures that the first was made of.
TEST_F(SourcesTest, TheFirstNamesAreKeptThroughManyPreparations) {
  const SteadyClock clock;
  const auto sources_of = [&](const std::string& set) {
    std::vector<std::string> names;
    const auto opened = dataset::PreparedSet::Open(Path(set)).value();
    for (const dataset::SetEntry& entry : opened->entries()) names.push_back(entry.source);
    return names;
  };
  for (const auto format :
       {dataset::SetFormat::kFiles, dataset::SetFormat::kTar, dataset::SetFormat::kTfrecord}) {
    ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path("first"), .format = format}, clock, {}, {}));
    EXPECT_THAT(sources_of("first"), Contains("in/3\\xFF"));
    std::string before = "first";
    for (const std::string next : {"second", "third"}) {
      sources_ = Sources::Open({.paths = {Path(before)}}).value();
      ASSERT_TRUE(PrepareSet(sources_->MakeFeed(), {.folder = Path(next), .format = format}, clock, {}, {}));
      EXPECT_EQ(sources_of(next), sources_of("first"));
      before = next;
    }
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(SourcesTest, APreviewShowsPicturesAndRejects) {
  const SteadyClock clock;
  const Options options{.folder = Path("set"),
                        .format = dataset::SetFormat::kRaw,
                        .geometry = dataset::Geometry{.resize = dataset::Size{40, 20}}};
  ASSERT_TRUE(PrepareSet(MakeFeed(20), options, clock, {}, {}));
  const std::string sheet = MakePreview(Path("set"), {.columns = 4, .rows = 3}).value();
  const auto info = image::ReadPictureInfo(std::as_bytes(std::span(sheet)), {});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->width, 4 * 116 + 4);
  EXPECT_EQ(info->height, 3 * 116 + 4 + 3 * 18 + 4);  // three lines: the count, and two reasons
  EXPECT_EQ(MakePreview(Path("set"), {.columns = 4, .rows = 3}).value(), sheet);
  EXPECT_NE(MakePreview(Path("set"), {.columns = 4, .rows = 3, .seed = 2}).value(), sheet);

  std::string manifest = ReadTextFile(Path("set/manifest.jsonl")).value();
  const std::string size = "\"bytes\":2400";
  manifest.replace(manifest.find(size), size.size(), "\"bytes\":240");
  Write("set/manifest.jsonl", manifest);
  const auto damaged = MakePreview(Path("set"), {.columns = 6, .rows = 4});
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("240 bytes are no record of 2400"));
}

}  // namespace
}  // namespace weir::prepare
