#include "prepare/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "dataset/verify.h"
#include "prepare/join.h"
#include "prepare/part.h"
#include "prepare/prepare.h"
#include "prepare/testing/pictures.h"

namespace weir::prepare {
namespace {

using ::testing::HasSubstr;
using testing_pictures::kFormats;
using testing_pictures::MakeFeed;
using testing_pictures::ReadAll;

TEST(ParseSplit, ReadsSharesWithAndWithoutNames) {
  const std::vector<SplitShare> three = {{"train", 0.8}, {"val", 0.1}, {"test", 0.1}};
  EXPECT_EQ(ParseSplit("0.8,0.1,0.1").value(), three);
  EXPECT_EQ(ParseSplit("train=0.8,val=0.1,test=0.1").value(), three);
  EXPECT_EQ(ParseSplit("0.75,0.25").value(), (std::vector<SplitShare>{{"train", 0.75}, {"val", 0.25}}));
  EXPECT_EQ(ParseSplit("a=0.1,b=0.2,c=0.3,d=0.4")->size(), 4u);
  EXPECT_EQ(ParseSplit(SplitText(three)).value(), three);
}

TEST(ParseSplit, RefusesWhatIsNoSplit) {
  const std::pair<const char*, const char*> wrong[] = {{"", "is not a share"},
                                                       {"1", "is not a share"},
                                                       {"0.8", "one share is the whole set"},
                                                       {"0.8,0.1", "add up to 0.9"},
                                                       {"0.8,0.2,0.2", "add up to"},
                                                       {"0.5,0.5,", "is not a share"},
                                                       {"1.5,-0.5", "is not a share"},
                                                       {"0,1", "is not a share"},
                                                       {"nan,0.5", "is not a share"},
                                                       {"0.8,val=0.2", "or none"},
                                                       {"a=0.5,a=0.5", "is there twice"},
                                                       {"a/b=0.5,c=0.5", "no name for a folder"},
                                                       {"=0.5,c=0.5", "no name for a folder"},
                                                       {"0.25,0.25,0.25,0.25", "need names"},
                                                       {"80%,20%", "is not a share"}};
  for (const auto& [text, why] : wrong) {
    const auto shares = ParseSplit(text);
    ASSERT_FALSE(shares) << text;
    EXPECT_EQ(shares.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(shares.error().message, HasSubstr(why)) << text;
  }
}

const std::vector<SplitShare> kShares = {{"train", 0.8}, {"val", 0.1}, {"test", 0.1}};

Feed NamesOnly(int64_t count, std::function<std::optional<int>(int64_t)> label) {
  Feed feed{.count = count};
  feed.name = [](int64_t i) { return "picture " + std::to_string(i); };
  feed.label = std::move(label);
  return feed;
}

TEST(PlanSplit, GivesEachLabelItsQuotaRoundedDownOrUpAndTheWholeItsOwn) {
  // Labels of 1 to 40 pictures, and pictures without a label.
  const auto label = [](int64_t i) -> std::optional<int> {
    if (i < 7) return std::nullopt;
    return static_cast<int>((std::sqrt(8.0 * static_cast<double>(i - 7) + 1) - 1) / 2);
  };
  const int64_t count = 7 + 40 * 41 / 2;
  const std::vector<uint8_t> plan = PlanSplit(NamesOnly(count, label), kShares, 1);
  std::map<int, std::vector<int64_t>> by_label;
  std::vector<int64_t> all(3);
  for (int64_t i = 0; i < count; ++i) {
    auto& counts = by_label.try_emplace(label(i).value_or(-1), 3).first->second;
    counts[plan[static_cast<size_t>(i)]] += 1;
    all[plan[static_cast<size_t>(i)]] += 1;
  }
  EXPECT_EQ(by_label.size(), 41u);
  for (const auto& [of, counts] : by_label) {
    const auto pictures = static_cast<double>(counts[0] + counts[1] + counts[2]);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_GE(static_cast<double>(counts[k]), std::floor(pictures * kShares[k].share + 1e-9)) << of;
      EXPECT_LE(static_cast<double>(counts[k]), std::ceil(pictures * kShares[k].share - 1e-9)) << of;
    }
  }
  for (size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(static_cast<double>(all[k]), static_cast<double>(count) * kShares[k].share, 2);
}

TEST(PlanSplit, FollowsNamesAndSeedNotTheOrder) {
  const auto label = [](int64_t i) { return std::optional<int>(static_cast<int>(i % 3)); };
  const Feed feed = NamesOnly(300, label);
  std::vector<int64_t> backwards;
  for (int64_t i = 299; i >= 0; --i) backwards.push_back(i);
  const auto plan = PlanSplit(feed, kShares, 1);
  auto turned = PlanSplit(Pick(feed, backwards), kShares, 1);
  std::ranges::reverse(turned);
  EXPECT_EQ(turned, plan);
  EXPECT_EQ(PlanSplit(feed, kShares, 1), plan);
  const auto other = PlanSplit(feed, kShares, 2);
  int64_t same = 0;
  for (size_t i = 0; i < plan.size(); ++i) same += plan[i] == other[i] ? 1 : 0;
  // By chance 0.8^2 + 0.1^2 + 0.1^2 = 0.66 of 300: 198, standard deviation below 8.2.
  EXPECT_NEAR(static_cast<double>(same), 198, 5 * 8.2);
}

class SplitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "split_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  Options OptionsFor(dataset::SetFormat format, const std::string& name) const {
    return {.folder = Path(name),
            .format = format,
            .geometry = dataset::Geometry{.short_side = 32, .crop = dataset::Size{24, 24}},
            .split = {{"train", 0.5}, {"val", 0.3}, {"test", 0.2}},
            .shard_bytes = 20'000,
            .replicate = 60,
            .workers = 2,
            .checkpoint_every = 0ms};
  }
  Result<PrepareSummary> Prepare(const Feed& feed, const Options& options) {
    return PrepareSet(feed, options, clock_, {}, {});
  }
  void StopAfter(int64_t after, const Feed& feed, const Options& options) {
    std::stop_source stop;
    int64_t done = 0;
    EXPECT_FALSE(PrepareSet(feed, options, clock_, stop.get_token(), [&](const Progress&) {
      if (++done == after) stop.request_stop();
    }));
  }
  // Twelve contents under forty names.
  static Feed ManyDuplicates() {
    Feed feed = MakeFeed(40);
    feed.get = [get = feed.get, name = feed.name](int64_t i) {
      FedPicture picture = get(i % 12);
      picture.source = name(i);
      picture.label = static_cast<int>(i % 2);
      return picture;
    };
    return feed;
  }

  SteadyClock clock_;
  std::string folder_;
};

TEST_F(SplitTest, EachShareIsASetAndTogetherTheyAreAllPictures) {
  const Feed feed = MakeFeed(40);
  Options options = OptionsFor(dataset::SetFormat::kTar, "split");
  options.replicate = 0;
  const PrepareSummary summary = Prepare(feed, options).value();
  std::set<int64_t> inputs;
  ASSERT_EQ(summary.splits.size(), 3u);
  for (const auto& [name, images] : summary.splits) {
    const std::string folder = Path("split/" + name);
    EXPECT_EQ(dataset::VerifySet(folder, {})->faults, 0);
    const auto set = dataset::PreparedSet::Open(folder).value();
    EXPECT_EQ(set->facts().split, name);
    EXPECT_EQ(set->facts().images, images);
    for (const dataset::SetEntry& entry : set->entries()) EXPECT_TRUE(inputs.insert(entry.input).second);
  }
  EXPECT_EQ(summary.splits[0].first, "train");
  EXPECT_EQ(std::ssize(inputs), summary.images);
  int64_t rejected = 0;
  for (const auto& [reason, count] : summary.rejected) rejected += count;
  EXPECT_EQ(summary.images + rejected, 40);
  EXPECT_TRUE(Prepare(feed, options)->was_finished);
}

TEST_F(SplitTest, TheSameBytesNeverLandInTwoShares) {
  const Feed feed = ManyDuplicates();
  Options options = OptionsFor(dataset::SetFormat::kFiles, "split");
  ASSERT_TRUE(Prepare(feed, options));
  std::map<std::string, std::string> share_of;
  int64_t twins = 0;
  for (const SplitShare& share : options.split) {
    const auto set = dataset::PreparedSet::Open(Path("split/" + share.name)).value();
    for (const dataset::SetEntry& entry : set->entries()) {
      const auto [known, is_new] = share_of.try_emplace(entry.source_hash, share.name);
      EXPECT_EQ(known->second, share.name) << entry.source;
      twins += is_new ? 0 : 1;
    }
  }
  EXPECT_GT(twins, 10);
}

TEST_F(SplitTest, StopsPartsAndWorkersGiveTheSameBytes) {
  for (const auto format : kFormats) {
    for (const bool reject_duplicates : {false, true}) {
      const Feed feed = ManyDuplicates();
      Options options = OptionsFor(format, "whole");
      options.reject_duplicates = reject_duplicates;
      ASSERT_TRUE(Prepare(feed, options));
      const auto whole = ReadAll(Path("whole"));
      options.workers = 5;
      for (const int64_t after : {1, 13, 38, 45}) {
        options.folder = Path("broken");
        StopAfter(after, feed, options);
        const auto summary = Prepare(feed, options);
        ASSERT_TRUE(summary) << summary.error().message;
        EXPECT_TRUE(ReadAll(Path("broken")) == whole) << after;
        std::filesystem::remove_all(Path("broken"));
      }
      options.folder = Path("parts");
      for (const int64_t index : {3, 1, 2}) {
        options.part = dataset::Part{index, 3};
        ASSERT_TRUE(Prepare(feed, options));
      }
      const JoinOptions join{.parts = {Path("parts")}, .folder = Path("joined")};
      const auto joined = JoinParts(join, clock_);
      ASSERT_TRUE(joined) << joined.error().message;
      EXPECT_TRUE(ReadAll(Path("joined")) == whole) << ToString(format) << reject_duplicates;
      EXPECT_TRUE(JoinParts(join, clock_)->was_finished);
      std::filesystem::remove_all(folder_);
    }
  }
}

TEST_F(SplitTest, VariationsAreSplitAlike) {
  const Feed feed = MakeFeed(30);
  Options options = OptionsFor(dataset::SetFormat::kRaw, "all");
  options.geometry.reset();
  options.variations = {{"small", {.resize = dataset::Size{8, 8}}},
                        {"wide", {.resize = dataset::Size{20, 8}}}};
  StopAfter(11, feed, options);
  ASSERT_TRUE(Prepare(feed, options));
  for (const Variation& variation : options.variations) {
    Options alone = OptionsFor(dataset::SetFormat::kRaw, variation.name);
    alone.geometry = variation.geometry;
    ASSERT_TRUE(Prepare(feed, alone));
    EXPECT_TRUE(ReadAll(Path("all/" + variation.name)) == ReadAll(Path(variation.name))) << variation.name;
  }
  options.folder = Path("parts");
  for (const int64_t index : {1, 2}) {
    options.part = dataset::Part{index, 2};
    ASSERT_TRUE(Prepare(feed, options));
  }
  ASSERT_TRUE(JoinParts({.parts = {Path("parts")}, .folder = Path("joined")}, clock_));
  EXPECT_TRUE(ReadAll(Path("joined")) == ReadAll(Path("all")));
}

TEST_F(SplitTest, AnotherSplitOrSeedIsRefused) {
  const Feed feed = MakeFeed(20);
  const Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  StopAfter(5, feed, options);
  Options other = options;
  other.split_seed = 2;
  EXPECT_THAT(Prepare(feed, other).error().message, HasSubstr("seed: 1 then, 2 now"));
  other = options;
  other.split = {{"a", 0.5}, {"b", 0.5}};
  EXPECT_THAT(Prepare(feed, other).error().message, HasSubstr("split: "));
  other.split.clear();
  EXPECT_THAT(Prepare(feed, other).error().message, HasSubstr("split: "));
  ASSERT_TRUE(Prepare(feed, options));
  EXPECT_EQ(Prepare(feed, other).error().code, ErrorCode::kInvalidArgument);
  other = options;
  other.split = {{"a", 0.5}, {"b", 0.5}};
  EXPECT_EQ(Prepare(feed, other).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(Path("set/a")));
}

TEST_F(SplitTest, AMissingShareOfAPartIsNamed) {
  const Feed feed = MakeFeed(20);
  Options options = OptionsFor(dataset::SetFormat::kTar, "parts");
  for (const int64_t index : {1, 2}) {
    options.part = dataset::Part{index, 2};
    ASSERT_TRUE(Prepare(feed, options));
  }
  std::filesystem::remove_all(Path("parts/part-2-of-2/val"));
  EXPECT_THAT(JoinParts({.parts = {Path("parts")}, .folder = Path("joined")}, clock_).error().message,
              HasSubstr("val of part 2 of 2 is missing"));
}

}  // namespace
}  // namespace weir::prepare
