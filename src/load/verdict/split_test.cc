#include "load/verdict/split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/seed.h"

namespace weir::load {
namespace {

constexpr Instant kStart(100s);

// Planned at the start, sent after 1 ms, its first byte 1 ms before its end.
Sample Lasting(Duration response) {
  return {.planned = kStart,
          .sent = kStart + 1ms,
          .first_byte = kStart + response - 1ms,
          .done = kStart + response,
          .send = 250us};
}

infer::ServerDurations Server(Duration queue) {
  return {.receive = 100us,
          .queue = queue,
          .compute_input = 200us,
          .compute_infer = 3ms,
          .compute_output = 300us,
          .rest = -50us};
}

double SumOf(const Split& split) { return std::accumulate(split.parts.begin(), split.parts.end(), 0.0); }

double Ms(double ns) { return ns / 1e6; }

TEST(Split, PartsOfARequestAreItsTimeAndWhatOverlapsCountsOnce) {
  const Split split = SplitOf(Lasting(10ms), Server(2ms));
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kSlip)), 1);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kReceive)), 0.1);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kQueue)), 2);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kServerRest)), 0);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kComputeInput)), 0.15);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kClientReceive)), 1);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kClientSend)), 0.25);
  EXPECT_DOUBLE_EQ(Ms(split.of(SplitPart::kWireAndWait)), 8 - 0.25 - 5.55);
  EXPECT_DOUBLE_EQ(Ms(split.response), 10);
  EXPECT_DOUBLE_EQ(SumOf(split), split.response);
  // The server receives while the client sends.
  Sample sample = Lasting(10ms);
  sample.send = 5ms;
  infer::ServerDurations server = Server(2ms);
  server.receive = 4ms;
  const Split large = SplitOf(sample, server);
  EXPECT_DOUBLE_EQ(Ms(large.of(SplitPart::kWireAndWait)), 0);
  EXPECT_DOUBLE_EQ(Ms(large.of(SplitPart::kClientSend)), 2.55 - Ms(large.of(SplitPart::kReceive)));
  EXPECT_GE(large.of(SplitPart::kReceive), 0);
  EXPECT_DOUBLE_EQ(SumOf(large), large.response);
  // A server that says more than the client saw.
  EXPECT_LT(SplitOf(Lasting(10ms), Server(7ms)).of(SplitPart::kWireAndWait), 0);
}

TEST(Split, EveryPartHasAKeyOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kParts; ++i) names.insert(ToString(static_cast<SplitPart>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kParts));
}

TEST(SplitSums, TellsWhereTheSlowOnesSpendTheirTime) {
  SplitSums sums;
  EXPECT_FALSE(sums.Mean());
  // Nineteen of twenty wait 1 ms in the queue, the other one 41.
  for (int i = 0; i < 1000; ++i) {
    const Duration queue = i % 20 == 0 ? 41ms : 1ms;
    sums.Add(Lasting(10ms + queue), Server(queue));
  }
  EXPECT_EQ(sums.count(), 1000);
  EXPECT_NEAR(Ms(sums.Mean()->of(SplitPart::kQueue)), 3, 1e-9);
  EXPECT_NEAR(Ms(sums.Mean()->response), 13, 1e-9);
  const Split slowest = *sums.MeanOfSlowest(10);
  EXPECT_NEAR(Ms(slowest.of(SplitPart::kQueue)), 41, 1e-9);
  EXPECT_NEAR(Ms(slowest.of(SplitPart::kComputeInfer)), 3, 1e-9);
  EXPECT_NEAR(Ms(slowest.response), 51, 1e-9);
  // A cut between the two kinds takes so many of each.
  EXPECT_NEAR(Ms(sums.MeanOfSlowest(100)->of(SplitPart::kQueue)), 21, 1e-9);
  EXPECT_FALSE(sums.MeanOfSlowest(1001));
  EXPECT_FALSE(sums.MeanOfSlowest(0));
}

TEST(SplitSums, AreTheWholeWhereverTheyAreCutAndMergedOrNot) {
  Random random = Seed(1).MakeRandom();
  SplitSums all, first, second;
  double longest = 0;
  for (int i = 0; i < 5000; ++i) {
    // From 4 ms to 1 s.
    const auto response = Duration(static_cast<int64_t>(4e6 * std::pow(250, random.Uniform())));
    const Sample sample = Lasting(response);
    const infer::ServerDurations server = Server(response / 3);
    all.Add(sample, server);
    (i % 3 == 0 ? first : second).Add(sample, server);
    longest = std::max(longest, static_cast<double>(response.count()));
  }
  first.Merge(second);
  EXPECT_EQ(first.count(), all.count());
  double before = longest * (1 + 1e-9);
  for (const int64_t requests : {1, 2, 50, 51, 500, 2500, 4999, 5000}) {
    const Split split = *all.MeanOfSlowest(requests);
    EXPECT_NEAR(SumOf(split), split.response, 1e-9 * split.response) << requests;
    EXPECT_NEAR(first.MeanOfSlowest(requests)->response, split.response, 1e-9 * split.response) << requests;
    EXPECT_LE(split.response, before) << requests;
    before = split.response * (1 + 1e-12);
  }
  EXPECT_NEAR(all.MeanOfSlowest(1)->response, longest, longest / 64);
}

TEST(SplitSums, TakeTimesOfAnyLengthInOrder) {
  SplitSums sums;
  int64_t added = 0;
  for (int64_t ns = 1; ns > 0 && ns < int64_t{1} << 60; ns = ns * 2 + 1, ++added) {
    Sample sample{.planned = kStart, .sent = kStart, .first_byte = kStart, .done = kStart + Duration(ns)};
    sums.Add(sample, {});
  }
  EXPECT_EQ(sums.count(), added);
  EXPECT_DOUBLE_EQ(sums.MeanOfSlowest(1)->response, std::exp2(60) - 1);
  // A clock that was set back makes a time below 0, which is the shortest of all.
  SplitSums two;
  two.Add({.planned = kStart, .sent = kStart, .first_byte = kStart, .done = kStart - 5ns}, {});
  two.Add({.planned = kStart, .sent = kStart, .first_byte = kStart, .done = kStart + 1ns}, {});
  EXPECT_DOUBLE_EQ(two.MeanOfSlowest(1)->response, 1);
  EXPECT_DOUBLE_EQ(two.Mean()->response, -2);
}

}  // namespace
}  // namespace weir::load
