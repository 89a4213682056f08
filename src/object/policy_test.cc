#include "object/policy.h"

#include <gtest/gtest.h>

namespace weir::object {
namespace {

constexpr Instant kStart(100s);

TEST(RetryBudget, ARunOfFailuresEndsTheRetries) {
  RetryBudget budget;
  int retries = 0;
  while (budget.TakeRetry()) ++retries;
  EXPECT_EQ(retries, 100);
}

TEST(RetryBudget, OneFailureInTwentyNeverUsesItUp) {
  RetryBudget budget;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 20 == 0) {
      ASSERT_TRUE(budget.TakeRetry()) << i;
    }
    budget.Succeeded();
  }
}

TEST(Backoff, GrowsToItsLongestAndIsSpreadOverAll) {
  Random random(1);
  const BackoffOptions options{.first = 100ms, .longest = 1s};
  Duration shortest = 1h, longest{};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(Backoff(options, 0, random), 100ms);
    const Duration wait = Backoff(options, 30, random);
    shortest = std::min(shortest, wait);
    longest = std::max(longest, wait);
  }
  EXPECT_LE(longest, 1s);
  EXPECT_GT(longest, 900ms);
  EXPECT_LT(shortest, 100ms);
}

TEST(HedgePolicy, WaitsForThe95thPercentileOfTheLastLatencies) {
  HedgePolicy policy;
  EXPECT_FALSE(policy.Delay());
  for (int i = 0; i < 2000; ++i)
    policy.Answered(i % 10 == 0 ? std::chrono::milliseconds(200 + i % 100) : 20ms);
  ASSERT_TRUE(policy.Delay());
  EXPECT_GE(*policy.Delay(), 200ms);
  EXPECT_LE(*policy.Delay(), 299ms);
}

TEST(HedgePolicy, WaitsForTwiceTheMedianWhereAllTakeAboutAsLong) {
  HedgePolicy policy;
  for (int i = 0; i < 2000; ++i) policy.Answered(std::chrono::milliseconds(100 + i % 10));
  ASSERT_TRUE(policy.Delay());
  EXPECT_GE(*policy.Delay(), 200ms);
}

TEST(HedgePolicy, SendsAtMostOneInTwentyTwice) {
  HedgePolicy policy;
  int hedges = 0;
  for (int i = 0; i < 10'000; ++i) {
    policy.Sent();
    hedges += policy.TakeHedge() ? 1 : 0;
  }
  EXPECT_LE(hedges, 500);
  EXPECT_GE(hedges, 490);
}

TEST(DepthLimit, GrowsByOneWithEachSuccessWhileFull) {
  DepthLimit depth({.first = 4, .least = 1, .most = 10});
  depth.Succeeded(false);
  EXPECT_EQ(depth.limit(), 4);
  for (int i = 0; i < 100; ++i) depth.Succeeded(true);
  EXPECT_EQ(depth.limit(), 10);
}

TEST(DepthLimit, RefusalsOfOneRoundCutItOnce) {
  DepthLimit depth({.first = 100, .least = 1, .most = 256});
  for (int i = 0; i < 50; ++i) depth.Refused(kStart, kStart + 10ms);
  EXPECT_EQ(depth.limit(), 70);
  depth.Refused(kStart + 20ms, kStart + 30ms);
  EXPECT_EQ(depth.limit(), 49);
  for (int i = 0; i < 50; ++i) depth.Succeeded(true);
  EXPECT_EQ(depth.limit(), 50);  // one round: one more
}

TEST(DepthLimit, NeverFallsBelowItsLeast) {
  DepthLimit depth({.first = 2, .least = 1, .most = 8});
  for (int i = 1; i < 20; ++i) depth.Refused(kStart + i * 1s, kStart + i * 1s);
  EXPECT_EQ(depth.limit(), 1);
}

}  // namespace
}  // namespace weir::object
