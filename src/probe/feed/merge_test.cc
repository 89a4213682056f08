#include "probe/feed/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "feed/epoch_hash.h"
#include "feed/state.h"

namespace weir::probe {
namespace {

using ::testing::HasSubstr;

std::string HashOf(int64_t position) {
  feed::EpochHash hash;
  hash.Add(position, 0, {}, {});
  return hash.Digest();
}

Json StateAt(int64_t epoch, int64_t position) {
  return *ParseJson(feed::FormatState({.set = std::string(32, 'a'),
                                       .recipe = std::string(16, 'b'),
                                       .seed = 1,
                                       .epoch = epoch,
                                       .position = position}));
}

HostFeed Part(const std::string& name, int64_t samples, double meet_ms) {
  results::FeedResult result;
  result.state = StateAt(1, samples);
  result.hash = "the set";
  result.samples = samples;
  result.batches = samples / 10;
  result.wall_s = 2;
  result.samples_per_s = static_cast<double>(samples) / 2;
  result.cpu_us_per_sample = 100;
  result.meet_ms = meet_ms;
  result.stages_ms.decode = 5;
  result.trainer = {.step_ms = 3, .utilisation_percent = 50};
  result.bottleneck = results::Bottleneck{.stage = "decode", .share = 1, .gain = 1, .text = "decode is long"};
  result.verdict = "VALID";
  result.rejected = {{"damaged", 1}};
  result.epoch_hashes = {HashOf(samples)};
  return {.host = {.name = name,
                   .build = {},
                   .clock = cluster::ClockOffset{.offset = 3us, .error = 1us},
                   .lost = {}},
          .result = result};
}

TEST(MergeFeeds, AddsUpRanksAndKeepsEachHost) {
  const auto merged = MergeFeeds({Part("a", 100, 500), Part("b", 300, 2)});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->world, 2);
  EXPECT_EQ(merged->samples, 400);
  EXPECT_EQ(merged->samples_per_s, 200);
  EXPECT_EQ(merged->cpu_us_per_sample, 100);
  EXPECT_EQ(merged->stages_ms.decode, 10);
  EXPECT_EQ(merged->meet_ms, 502);
  EXPECT_EQ(merged->trainer->utilisation_percent, 50);
  EXPECT_EQ(merged->rejected.at("damaged"), 2);
  EXPECT_EQ(merged->verdict, "VALID");
  ASSERT_EQ(merged->hosts.size(), 2);
  EXPECT_EQ(merged->hosts[1].name, "b");
  EXPECT_EQ(merged->hosts[1].rank, 1);
  EXPECT_EQ(merged->hosts[1].samples, 300);
  EXPECT_EQ(merged->hosts[1].clock_offset_us, 3);
}

TEST(MergeFeeds, GoesOnFromTheEarliestState) {
  HostFeed behind = Part("b", 300, 2);
  EXPECT_EQ(MergeFeeds({Part("a", 100, 5), behind})->state, StateAt(1, 100));
  behind.result->state = StateAt(0, 400);
  EXPECT_EQ(MergeFeeds({Part("a", 100, 5), behind})->state, StateAt(0, 400));
}

TEST(MergeFeeds, HashesAsOneRankDoes) {
  feed::EpochHash whole;
  whole.Add(100, 0, {}, {});
  whole.Add(300, 0, {}, {});
  const auto merged = MergeFeeds({Part("a", 100, 5), Part("b", 300, 2)});
  EXPECT_THAT(merged->epoch_hashes, testing::ElementsAre(whole.Digest()));
}

TEST(MergeFeeds, NamesTheHostThatTheOthersWaitFor) {
  EXPECT_THAT(MergeFeeds({Part("a", 100, 500), Part("b", 300, 2)})->bottleneck->text, HasSubstr("b, which"));
  EXPECT_EQ(MergeFeeds({Part("a", 100, 5)})->bottleneck->text, "decode is long");
}

TEST(MergeFeeds, IsInvalidWithALostHost) {
  HostFeed lost = Part("b", 300, 2);
  lost.result.reset();
  lost.host.lost = "no sign of it for 4.0 s";
  const auto merged = MergeFeeds({Part("a", 100, 5), lost});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->verdict, "INVALID");
  EXPECT_EQ(merged->reasons.back().reason, "host-lost");
  EXPECT_THAT(merged->reasons.back().evidence, HasSubstr("b: no sign"));
  EXPECT_EQ(merged->hosts[1].lost, lost.host.lost);
  EXPECT_TRUE(merged->epoch_hashes.empty());
  EXPECT_THAT(MergeFeeds({lost}).error().message, HasSubstr("no host has a result"));
}

TEST(MergeFeeds, TakesTheWorstVerdictWithTheHostsName) {
  HostFeed part = Part("b", 300, 2);
  part.result->verdict = "SUSPECT";
  part.result->reasons = {{"steal", "5 %"}};
  const auto merged = MergeFeeds({Part("a", 100, 5), part});
  EXPECT_EQ(merged->verdict, "SUSPECT");
  EXPECT_EQ(merged->reasons.front().evidence, "b: 5 %");
}

TEST(MergeFeeds, RefusesDifferentSets) {
  HostFeed other = Part("b", 300, 2);
  other.result->hash = "another";
  EXPECT_THAT(MergeFeeds({Part("a", 100, 5), other}).error().message, HasSubstr("different sets"));
}

}  // namespace
}  // namespace weir::probe
