#include "prepare/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "prepare/prepare.h"
#include "prepare/preview.h"
#include "prepare/testing/pictures.h"
#include "prepare/testing/sources.h"

namespace weir::prepare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_pictures::EncodedNoise;
using testing_pictures::MakeFeed;
using testing_pictures::ReadAll;
using testing_sources::SourcesTest;

TEST_F(SourcesTest, FoldersGiveTheirPicturesInByteOrder) {
  Write("in/b/2.jpg", "2");
  Write("in/a/1.jpg", "1");
  Write("in/0.png", "0");
  Write("in/.hidden.jpg", "x");
  EXPECT_THAT(Read({.paths = {Path("in")}}), ElementsAre("0.png - 0", "a/1.jpg - 1", "b/2.jpg - 2"));
  EXPECT_THAT(not_taken_, ElementsAre(".hidden.jpg - hidden"));
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

TEST_F(SourcesTest, SourcesWithoutAPictureAreRefused) {
  Write("in/notes.txt", "no picture");
  const Error error = Refusal({.paths = {Path("in")}});
  EXPECT_EQ(error.code, ErrorCode::kIo);  // a job that took nothing, and no wrong usage
  EXPECT_THAT(error.message, HasSubstr("no pictures in " + Path("in") +
                                       ", and 1 entries that are not taken (first notes.txt: not a picture"));
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
    EXPECT_THAT(error.message, HasSubstr(again.starts_with("x/0.jpg") ? "several members are named x/0.jpg"
                                                                      : "several members are named x/0.cls"));
    EXPECT_THAT(error.message, HasSubstr("give each sample a name of its own"));
  }
  Write("in.tar", sample + Member("y/0.jpg", "B") + Member("x/0.json", "{}") + Member("x/0.json", "{}"));
  EXPECT_EQ(Read({.paths = {Path("in.tar")}}).size(), 2u);
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
  EXPECT_THAT(not_taken_, ElementsAre("in.tar/5.txt - not-a-picture"));
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

// For each archive what the label of each picture is, by WebDataset's rule and the names.
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
