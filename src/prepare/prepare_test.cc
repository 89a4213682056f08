#include "prepare/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/seed.h"
#include "dataset/hash.h"
#include "dataset/preparer.h"
#include "prepare/in_order.h"
#include "prepare/testing/pictures.h"

namespace weir::prepare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing_pictures::kFormats;
using testing_pictures::MakeFeed;
using testing_pictures::ReadAll;

class PrepareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "prepare_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<PrepareSummary> Prepare(const Feed& feed, Options options, const std::string& name = "set") {
    options.folder = Path(name);
    return PrepareSet(feed, options, clock_, {}, {});
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  SteadyClock clock_;
  std::string folder_;
  const dataset::Geometry geometry_{.short_side = 32, .crop = dataset::Size{24, 24}};
};

TEST_F(PrepareTest, TheSetDependsNeitherOnTheWorkersNorOnItsName) {
  for (const auto format : kFormats) {
    const Options options{.format = format, .geometry = geometry_, .replicate = 70};
    Options many = options;
    many.workers = 5;
    Options one = options;
    one.workers = 1;
    ASSERT_TRUE(Prepare(MakeFeed(60), one, "a"));
    ASSERT_TRUE(Prepare(MakeFeed(60), many, "another name"));
    EXPECT_TRUE(ReadAll(Path("a")) == ReadAll(Path("another name")));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(PrepareTest, EveryPictureIsInTheSetOrRejectedWithItsReason) {
  const PrepareSummary summary = Prepare(MakeFeed(60), {.geometry = geometry_, .workers = 3}).value();
  EXPECT_EQ(summary.images, 60 - 1 - 8);
  EXPECT_THAT(summary.rejected, ElementsAre(Pair("damaged", 8), Pair("unreadable", 1)));
  EXPECT_GT(summary.bytes_in, summary.bytes_out);
  EXPECT_GT(summary.images_per_s.value(), 0);
  const auto set = dataset::PreparedSet::Open(Path("set")).value();
  EXPECT_EQ(set->facts().geometry, geometry_);
  EXPECT_EQ(set->facts().bytes, summary.bytes_out);
  EXPECT_THAT(set->facts().classes, ElementsAre("even", "odd"));
  EXPECT_EQ(set->entries()[5].source, "in/7\\xFF");  // 5 and 6 were rejected
  EXPECT_EQ(set->entries()[5].label, 1);
  const std::string rejects = ReadTextFile(Path("set/rejects.jsonl")).value();
  EXPECT_THAT(
      rejects,
      HasSubstr(R"({"source":"in/5\\xFF","input":5,"reason":"unreadable","detail":"Permission denied"})"));
}

TEST_F(PrepareTest, RawRecordsAreThePreparedPixels) {
  dataset::Geometry bgr = geometry_;
  bgr.channels = dataset::Channels::kBgr;
  ASSERT_TRUE(Prepare(MakeFeed(4), {.format = dataset::SetFormat::kRaw, .geometry = bgr}));
  const auto set = dataset::PreparedSet::Open(Path("set")).value();
  dataset::Preparer preparer(bgr, {});
  for (int64_t i = 0; i < 4; ++i) {
    const auto pixels = preparer.Prepare(MakeFeed(4).get(i).encoded->span());
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span((*pixels)->data)), set->ReadRecord(i)->span()));
  }
}

TEST_F(PrepareTest, PicturesWrittenAsFilesAreRgbWhateverTheOrderOfTheRecipe) {
  dataset::Geometry bgr = geometry_;
  bgr.channels = dataset::Channels::kBgr;
  ASSERT_TRUE(Prepare(MakeFeed(1), {.geometry = bgr, .encoding = Encoding::kPng}, "bgr"));
  ASSERT_TRUE(Prepare(MakeFeed(1), {.geometry = geometry_, .encoding = Encoding::kPng}, "rgb"));
  const std::string file = "/pictures/00000/00000000.png";
  EXPECT_EQ(ReadTextFile(Path("bgr") + file).value(), ReadTextFile(Path("rgb") + file).value());
}

TEST_F(PrepareTest, WithoutAGeometryFilesKeepTheirBytes) {
  const PrepareSummary summary = Prepare(MakeFeed(8), {}).value();
  EXPECT_EQ(summary.images, 6);
  EXPECT_THAT(summary.rejected, ElementsAre(Pair("damaged", 1), Pair("unreadable", 1)));
  const auto set = dataset::PreparedSet::Open(Path("set")).value();
  EXPECT_FALSE(set->facts().geometry);
  EXPECT_EQ(set->entries()[0].path, "pictures/00000/00000000.png");
  EXPECT_EQ(set->entries()[1].path, "pictures/00000/00000001.jpg");
  EXPECT_EQ(ReadTextFile(Path("set/" + set->entries()[4].path)), MakeFeed(8).get(4).encoded->text());
}

TEST_F(PrepareTest, ReplicatesInTurnUpToTheNumber) {
  const PrepareSummary summary = Prepare(MakeFeed(4), {.replicate = 10}).value();
  EXPECT_EQ(summary.images, 10);
  const auto set = dataset::PreparedSet::Open(Path("set")).value();
  for (int i = 4; i < 10; ++i) {
    EXPECT_EQ(set->entries()[i].hash, set->entries()[i % 4].hash);
    EXPECT_EQ(set->entries()[i].label, set->entries()[i % 4].label);
    EXPECT_NE(set->entries()[i].path, set->entries()[i % 4].path);
  }
}

TEST_F(PrepareTest, SmallFilesAreRejectedOnlyBelowTheLimit) {
  Feed feed = MakeFeed(1);
  const int64_t bytes = static_cast<int64_t>(feed.get(0).encoded->size());
  EXPECT_EQ(Prepare(feed, {.min_bytes = bytes}, "a")->images, 1);
  EXPECT_THAT(Prepare(feed, {.min_bytes = bytes + 1}, "b")->rejected, ElementsAre(Pair("too-few-bytes", 1)));
}

TEST_F(PrepareTest, OptionsThatCannotBeAreRefusedBeforeAnythingIsWritten) {
  EXPECT_THAT(Prepare(MakeFeed(1), {.format = dataset::SetFormat::kRaw}).error().message,
              HasSubstr("of one size"));
  EXPECT_THAT(Prepare(MakeFeed(1), {.jpeg = {.quality = 0}}).error().message, HasSubstr("quality"));
  EXPECT_THAT(Prepare(MakeFeed(1), {.workers = -1}).error().message, HasSubstr("negative"));
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(PrepareTest, TheSameBytesGoInOnce) {
  const PrepareSummary kept = Prepare(MakeFeed(10), {}, "kept").value();
  EXPECT_EQ(kept.images, 8);
  const PrepareSummary once = Prepare(MakeFeed(10), {.reject_duplicates = true}, "once").value();
  EXPECT_EQ(once.images, 7);
  EXPECT_EQ(once.rejected.at("duplicate"), 1);
  EXPECT_THAT(ReadTextFile(Path("once/rejects.jsonl")).value(),
              HasSubstr(R"("input":8,"reason":"duplicate")"));
}

TEST_F(PrepareTest, AJudgeRejectsWhatItDoesNotLike) {
  const auto make_judge = [] {
    return [](std::span<const std::byte> encoded) -> image::Accepted<void> {
      if (encoded.size() % 2 == 0) return {};
      return std::unexpected(image::Reject{image::RejectReason::kUnrecognised, "odd"});
    };
  };
  const PrepareSummary all = Prepare(MakeFeed(30), {}, "all").value();
  const PrepareSummary some =
      Prepare(MakeFeed(30), {.make_judge = make_judge, .judged_by = "me"}, "some").value();
  EXPECT_GT(some.rejected.at("unrecognised"), 0);
  EXPECT_LT(some.images, all.images);
  EXPECT_THAT(ReadTextFile(Path("some/set.json")).value(), HasSubstr(R"("judged_by": "me")"));
}

TEST_F(PrepareTest, TheManifestTellsOfSourceAndResult) {
  ASSERT_TRUE(Prepare(MakeFeed(2), {.geometry = geometry_, .sha256 = true}));
  const auto set = dataset::PreparedSet::Open(Path("set")).value();
  const dataset::SetEntry& entry = set->entries()[1];
  const Bytes source = *MakeFeed(2).get(1).encoded;
  const std::string result = ReadTextFile(Path("set/" + entry.path)).value();
  EXPECT_EQ(entry.input, 1);
  EXPECT_EQ(entry.source_hash, dataset::HashOf(source.span()));
  EXPECT_EQ(entry.source_sha256, dataset::Sha256Of(source.span()));
  EXPECT_EQ(entry.source_bytes, static_cast<int64_t>(source.size()));
  EXPECT_EQ(entry.sha256, dataset::Sha256Of(std::as_bytes(std::span(result))));
  EXPECT_EQ(entry.width, 24);
  EXPECT_EQ(entry.height, 24);
  EXPECT_EQ(entry.recipe, dataset::GeometryHash(geometry_));
}

TEST(InOrder, HoldsTheWindowAndTheOrder) {
  InOrder<int64_t> order(100, 4, 0);
  std::atomic<int64_t> consumed = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (const auto index = order.Take()) {
        EXPECT_LT(*index, consumed.load() + 4 + 1);  // Next may have freed a slot that is not counted yet
        order.Put(*index, *index * *index, 0);
      }
    });
  }
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(order.Next(), i * i);
    consumed = i + 1;
  }
}

// Where one result is more than all may hold, each waits for the one before it.
TEST(InOrder, HoldsTheBytes) {
  InOrder<int> order(50, 8, 100);
  std::atomic<int> waiting = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (const auto index = order.Take()) {
        EXPECT_LE(++waiting,
                  1 + 3 + 1);  // one over the limit, one that each worker has, one just handed over
        order.Put(*index, 7, 101);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(order.Next(), 7);
    --waiting;
  }
}

TEST(InOrder, StopEndsTheWaitForRoom) {
  InOrder<int> order(100, 2, 0);
  std::jthread worker([&] {
    while (const auto index = order.Take()) order.Put(*index, 1, 0);
  });
  EXPECT_EQ(order.Next(), 1);
  order.Stop();
}

}  // namespace
}  // namespace weir::prepare
