#include "prepare/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/tar.h"
#include "prepare/labels.h"
#include "prepare/prepare.h"
#include "prepare/preview.h"
#include "prepare/testing/pictures.h"

namespace weir::prepare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_pictures::EncodedNoise;
using testing_pictures::MakeFeed;

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
                                       : std::string(data::ToString(picture.encoded.error().reason))));
    }
    classes_ = feed.classes;
    return lines;
  }
  Error Refusal(SourceOptions options) { return Sources::Open(std::move(options)).error(); }
  static std::string Member(const std::string& name, const std::string& contents) {
    const auto size = static_cast<int64_t>(contents.size());
    return data::FormatTarHeader(name, size) + contents + data::TarPadding(size);
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
  EXPECT_EQ(sources_->skipped(), 1);
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

TEST_F(SourcesTest, PreparedSetsGiveTheirPicturesAndClasses) {
  const SteadyClock clock;
  for (const auto format : {data::SetFormat::kFiles, data::SetFormat::kTar, data::SetFormat::kTfrecord}) {
    const std::string name(data::ToString(format));
    ASSERT_TRUE(PrepareSet(MakeFeed(4), {.folder = Path(name), .format = format}, clock, {}, {}));
    const auto read = Read({.paths = {Path(name)}});
    ASSERT_EQ(read.size(), 4u);
    EXPECT_THAT(read[1], HasSubstr(" 1 \xff"));
    EXPECT_THAT(classes_, ElementsAre("even", "odd"));
  }
  ASSERT_TRUE(PrepareSet(MakeFeed(2),
                         {.folder = Path("raw"),
                          .format = data::SetFormat::kRaw,
                          .geometry = data::Geometry{.resize = data::Size{8, 8}}},
                         clock, {}, {}));
  EXPECT_EQ(Refusal({.paths = {Path("raw")}}).code, ErrorCode::kUnsupported);
  EXPECT_THAT(Read({.lists = {}}), ElementsAre());
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
  EXPECT_EQ(feed.get(0).encoded.error().reason, data::RejectReason::kVanished);
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

TEST(Csv, QuotesHoldCommasAndQuotes) {
  EXPECT_EQ(SplitCsv(R"(a,"b,c","d""e",)"), (std::vector<std::string>{"a", "b,c", "d\"e", ""}));
  EXPECT_EQ(SplitCsv(""), std::vector<std::string>{""});
  for (const char* wrong : {R"("a)", R"(a"b)", R"("a"b)"}) EXPECT_FALSE(SplitCsv(wrong)) << wrong;
}

TEST_F(SourcesTest, APreviewShowsPicturesAndRejects) {
  const SteadyClock clock;
  const Options options{.folder = Path("set"),
                        .format = data::SetFormat::kRaw,
                        .geometry = data::Geometry{.resize = data::Size{40, 20}}};
  ASSERT_TRUE(PrepareSet(MakeFeed(20), options, clock, {}, {}));
  const std::string sheet = MakePreview(Path("set"), {.columns = 4, .rows = 3}).value();
  const auto info = data::ReadPictureInfo(std::as_bytes(std::span(sheet)), {});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->width, 4 * 116 + 4);
  EXPECT_EQ(info->height, 3 * 116 + 4 + 3 * 18 + 4);  // three lines: the count, and two reasons
  EXPECT_EQ(MakePreview(Path("set"), {.columns = 4, .rows = 3}).value(), sheet);
  EXPECT_NE(MakePreview(Path("set"), {.columns = 4, .rows = 3, .seed = 2}).value(), sheet);
}

}  // namespace
}  // namespace weir::prepare
