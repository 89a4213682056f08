#include "feed/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "feed/slice.h"

namespace weir::feed {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> All(const EpochOrder& order) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < order.size(); ++i) samples.push_back(order.At(i));
  return samples;
}

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

Sampler Make(const SamplerOptions& options, int64_t count, const std::vector<int32_t>& labels = {}) {
  auto sampler = Sampler::Make(options, count, labels);
  CHECK(sampler.has_value());
  return *sampler;
}

TEST(Sampler, GivesEachSampleOnceInAnEpoch) {
  for (const auto& options : {SamplerOptions{.sampling = Sampling::kSequential}, SamplerOptions{},
                              SamplerOptions{.sampling = Sampling::kBlocks, .block = 10, .window = 3},
                              SamplerOptions{.sampling = Sampling::kBlocks, .block = 1, .window = 1},
                              SamplerOptions{.sampling = Sampling::kBlocks, .block = 5000, .window = 2}}) {
    for (const int64_t count : {1, 9, 10, 11, 100, 1003}) {
      const Sampler sampler = Make(options, count);
      for (const uint64_t epoch : {0, 1, 2}) {
        auto samples = All(sampler.MakeEpoch(3, epoch));
        std::ranges::sort(samples);
        ASSERT_EQ(samples, Numbers(count)) << ToString(options.sampling) << " " << count;
      }
    }
  }
}

TEST(Sampler, ChangesTheOrderWithSeedAndEpoch) {
  for (const Sampling sampling : {Sampling::kGlobal, Sampling::kBlocks}) {
    const Sampler sampler = Make({.sampling = sampling, .block = 4, .window = 5}, 200);
    const auto first = All(sampler.MakeEpoch(1, 0));
    EXPECT_EQ(first, All(sampler.MakeEpoch(1, 0)));
    EXPECT_NE(first, All(sampler.MakeEpoch(1, 1)));
    EXPECT_NE(first, All(sampler.MakeEpoch(2, 0)));
  }
}

TEST(Sampler, OfBlocksTakesAWindowsSamplesOneAfterTheOther) {
  const Sampler sampler = Make({.sampling = Sampling::kBlocks, .block = 10, .window = 3}, 100);
  const auto samples = All(sampler.MakeEpoch(1, 0));
  // Ten blocks of ten: a window of three of them at a time, and the last alone.
  for (size_t begin = 0; begin < 100; begin += 30) {
    std::map<int64_t, int> blocks;
    for (size_t i = begin; i < std::min<size_t>(100, begin + 30); ++i) ++blocks[samples[i] / 10];
    EXPECT_EQ(blocks.size(), begin < 90 ? 3u : 1u);
    for (const auto& [block, count] : blocks) EXPECT_EQ(count, 10);
  }
}

TEST(Sampler, OfWeightsDrawsInProportion) {
  const Sampler sampler = Make({.sampling = Sampling::kWeighted, .weights = {1, 0, 3, 0}}, 4);
  std::map<int64_t, int> counts;
  for (uint64_t epoch = 0; epoch < 10'000; ++epoch) {
    for (const int64_t sample : All(sampler.MakeEpoch(1, epoch))) ++counts[sample];
  }
  EXPECT_EQ(counts.count(1) + counts.count(3), 0u);
  EXPECT_NEAR(counts[0], 10'000, 400);
  EXPECT_NEAR(counts[2], 30'000, 400);
}

TEST(Sampler, OfBalanceTakesEveryClassAsOften) {
  std::vector<int32_t> labels(100, 0);
  labels[7] = 1;
  labels[8] = labels[9] = 3;
  labels[10] = -1;  // without a class: never taken
  const Sampler sampler = Make({.sampling = Sampling::kBalanced}, 100, labels);
  EXPECT_EQ(sampler.size(), 99);  // 33 of each of three classes; class 2 has no samples
  std::map<int32_t, int> counts;
  std::map<int64_t, int> samples;
  for (const int64_t sample : All(sampler.MakeEpoch(1, 0))) {
    ++counts[labels[static_cast<size_t>(sample)]];
    ++samples[sample];
  }
  EXPECT_THAT(counts, ElementsAre(std::pair(0, 33), std::pair(1, 33), std::pair(3, 33)));
  EXPECT_EQ(samples[7], 33);
  EXPECT_NEAR(samples[8], 16.5, 0.6);  // in turns
  for (const auto& [sample, count] : samples) {
    if (labels[static_cast<size_t>(sample)] == 0) {
      EXPECT_EQ(count, 1);
    }
  }
}

TEST(Sampler, OfASubsetTakesItAlone) {
  const Sampler in_order = Make({.sampling = Sampling::kSequential, .subset = {{5, 3, 9}}}, 10);
  EXPECT_THAT(All(in_order.MakeEpoch(1, 0)), ElementsAre(5, 3, 9));
  const Sampler mixed = Make({.subset = {{5, 3, 9}}}, 10);
  EXPECT_THAT(All(mixed.MakeEpoch(1, 0)), ::testing::UnorderedElementsAre(5, 3, 9));
}

std::string Refusal(const SamplerOptions& options, int64_t count, const std::vector<int32_t>& labels = {}) {
  const auto sampler = Sampler::Make(options, count, labels);
  if (sampler) return "accepted";
  EXPECT_EQ(sampler.error().code, ErrorCode::kInvalidArgument);
  return sampler.error().message;
}

TEST(Sampler, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Refusal({}, 0), HasSubstr("empty"));
  EXPECT_THAT(Refusal({.subset = {{}}}, 3), HasSubstr("names no sample"));
  EXPECT_THAT(Refusal({.subset = {{0, 3}}}, 3), HasSubstr("names sample 3"));
  EXPECT_THAT(Refusal({.subset = {{-1}}}, 3), HasSubstr("names sample -1"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kBlocks, .block = 0}, 3), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kWeighted, .weights = {1, 2}}, 3), HasSubstr("2 weights for 3"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kWeighted, .weights = {1, -1}}, 2), HasSubstr("sample 1 is -1"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kWeighted, .weights = {0, 0}}, 2),
              HasSubstr("no positive number"));
  EXPECT_THAT(
      Refusal({.sampling = Sampling::kWeighted, .weights = {std::numeric_limits<double>::quiet_NaN()}}, 1),
      HasSubstr("nan"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kBalanced}, 3), HasSubstr("labels"));
  EXPECT_THAT(Refusal({.sampling = Sampling::kBalanced}, 2, {-1, -1}), HasSubstr("labels"));
}

TEST(Sampler, HasATextForEachRule) {
  std::vector<std::string> texts;
  for (const SamplerOptions& options : {SamplerOptions{}, SamplerOptions{.sampling = Sampling::kSequential},
                                        SamplerOptions{.sampling = Sampling::kBlocks},
                                        SamplerOptions{.sampling = Sampling::kBlocks, .window = 9},
                                        SamplerOptions{.sampling = Sampling::kWeighted, .weights = {1, 2}},
                                        SamplerOptions{.sampling = Sampling::kWeighted, .weights = {1, 3}},
                                        SamplerOptions{.subset = {{0}}}, SamplerOptions{.subset = {{1}}}}) {
    texts.push_back(Make(options, 2).Canonical());
  }
  std::ranges::sort(texts);
  EXPECT_TRUE(std::ranges::adjacent_find(texts) == texts.end());
}

TEST(Mixing, TellsAShuffleFromTheSetsOwnOrder) {
  std::vector<int32_t> labels;
  for (int i = 0; i < 10'000; ++i) labels.push_back(i / 100);  // sorted by class
  const auto mixing = [&](const SamplerOptions& options) {
    return MeasureMixing(Make(options, 10'000).MakeEpoch(1, 0), 64, labels);
  };
  const Mixing global = mixing({}), own = mixing({.sampling = Sampling::kSequential});
  EXPECT_NEAR(*global.serial_correlation, 0, 0.05);
  EXPECT_NEAR(*global.class_share, 1, 0.05);
  EXPECT_GT(*own.serial_correlation, 0.99);
  EXPECT_LT(*own.class_share, 0.05);
  const Mixing blocks = mixing({.sampling = Sampling::kBlocks, .block = 100, .window = 2});
  EXPECT_GT(*blocks.serial_correlation, 0.4);
  EXPECT_LT(*blocks.class_share, 0.1);
  const Mixing wide = mixing({.sampling = Sampling::kBlocks, .block = 10, .window = 100});
  EXPECT_LT(*wide.serial_correlation, 0.1);
  EXPECT_GT(*wide.class_share, 0.8);
}

TEST(Mixing, OfOneSampleIsNotKnown) {
  EXPECT_FALSE(MeasureMixing(Make({}, 1).MakeEpoch(1, 0), 4, {}).serial_correlation);
}

// All positions of all ranks, one global batch after the other.
std::vector<int64_t> Merged(int64_t batch, int64_t world, Ends ends, int64_t positions, int64_t begin = 0) {
  std::vector<int64_t> merged;
  Slice slice{batch, 0, world, ends};
  const int64_t batches = BatchesFrom(slice, positions, begin);
  for (int64_t b = 0; b < batches; ++b) {
    for (slice.rank = 0; slice.rank < world; ++slice.rank) {
      for (int64_t row = 0; row < batch; ++row)
        merged.push_back(PositionOf(slice, positions, begin + b * slice.global_batch(), row).value_or(-1));
    }
  }
  return merged;
}

TEST(Slice, OfSeveralRanksMergeToOne) {
  for (const Ends ends : {Ends::kDrop, Ends::kPad, Ends::kWrap}) {
    for (const int64_t begin : {0, 32, 96}) {
      const auto one = Merged(16, 1, ends, 100, begin);
      EXPECT_EQ(Merged(8, 2, ends, 100, begin), one);
      EXPECT_EQ(Merged(4, 4, ends, 100, begin), one);
    }
  }
}

TEST(Slice, EndsAsAsked) {
  EXPECT_EQ(Merged(4, 1, Ends::kDrop, 6), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Merged(4, 1, Ends::kPad, 6), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, -1, -1}));
  EXPECT_EQ(Merged(4, 1, Ends::kWrap, 6), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(Merged(2, 4, Ends::kWrap, 3), (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(Merged(4, 1, Ends::kPad, 4).size(), 4u);
  EXPECT_EQ(BatchesFrom({4, 0, 1, Ends::kPad}, 6, 6), 0);
}

TEST(Slice, RefusesWhatLeavesNothing) {
  EXPECT_TRUE(CheckSlice({4, 0, 1, Ends::kDrop}, 4));
  const auto refused = CheckSlice({4, 1, 2, Ends::kDrop}, 7);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("pad or wrap"));
  EXPECT_TRUE(CheckSlice({4, 1, 2, Ends::kWrap}, 1));
  EXPECT_FALSE(CheckSlice({0, 0, 1}, 9));
  EXPECT_FALSE(CheckSlice({1, 2, 2}, 9));
  EXPECT_FALSE(CheckSlice({1, -1, 2}, 9));
  EXPECT_FALSE(CheckSlice({1, 0, 0}, 9));
}

}  // namespace
}  // namespace weir::feed
