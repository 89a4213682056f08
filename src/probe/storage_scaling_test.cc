#include "probe/storage_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weir::probe {
namespace {

TEST(MeasureUnits, GivesTheShareOfEachAddedUnit) {
  // The second unit adds as much as the first, the third a quarter of the mean of the first two.
  const double rates[] = {1000, 2000, 2250};
  std::vector<int> order;
  const auto units = MeasureUnits({"a", "b", "c"}, 2, [&](int units, int round) -> Result<double> {
    order.push_back(units);
    return rates[units - 1] * (round == 0 ? 1.0 : 1.1);
  });
  ASSERT_TRUE(units);
  ASSERT_EQ(units->size(), 3U);
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3, 3, 2, 1));
  EXPECT_FALSE((*units)[0].share);
  EXPECT_NEAR((*units)[1].share->value, 1, 1e-9);
  EXPECT_NEAR((*units)[2].share->value, 0.25, 1e-9);
  EXPECT_NEAR((*units)[0].samples_per_s.value, 1050, 1e-9);
  EXPECT_LT(*(*units)[0].samples_per_s.low, 1050);
}

// Storages read together, one step after the other: the slowest sets the pace of each.
StoragesTrial Together(std::vector<double> alone) {
  return [alone](const std::vector<size_t>& units, int) -> Result<double> {
    double slowest = alone[units[0]];
    for (const size_t unit : units) slowest = std::min(slowest, alone[unit]);
    return slowest * static_cast<double>(units.size());
  };
}

TEST(MeasureStorages, SaysTheSameOfUnequalStoragesInBothOrders) {
  const auto one = MeasureStorages({"slow", "fast"}, 2, Together({20, 200}));
  const auto other = MeasureStorages({"fast", "slow"}, 2, Together({200, 20}));
  ASSERT_TRUE(one && other);
  EXPECT_TRUE(AreUnequal(*one));
  for (const auto& units : {*one, *other}) {
    ASSERT_EQ(units.size(), 2U);
    EXPECT_EQ(units[0].path, "fast");
    EXPECT_NEAR(units[0].alone->value, 200, 1e-9);
    EXPECT_NEAR(units[1].alone->value, 20, 1e-9);
    EXPECT_NEAR(units[1].samples_per_s.value, 40, 1e-9) << "together";
    EXPECT_FALSE(units[1].share);
  }
}

TEST(MeasureStorages, EqualStoragesHaveShares) {
  const auto units = MeasureStorages({"a", "b"}, 2, Together({100, 110}));
  ASSERT_TRUE(units);
  EXPECT_FALSE(AreUnequal(*units));
  EXPECT_EQ((*units)[0].path, "a");
  EXPECT_NEAR((*units)[1].share->value, 1, 1e-9);
}

TEST(MeasureUnits, OneRoundHasNoInterval) {
  const auto units = MeasureUnits({"a", "b"}, 1, [](int units, int) -> Result<double> { return units * 10; });
  ASSERT_TRUE(units);
  EXPECT_FALSE((*units)[1].share->low);
}

// Little's law: n reads in flight of time t give n / t samples/s, up to the demand.
LatencyTrial Storage(double demand, double read_s, double added_s, int& trials) {
  return [=, &trials](int in_flight, bool delayed, int) -> Result<double> {
    ++trials;
    return std::min(demand, in_flight / (read_s + (delayed ? added_s : 0)));
  };
}

TEST(MeasureLatency, NamesTheDepthFromWhichOnItDoesNotMatter) {
  int trials = 0;
  const auto answer =
      MeasureLatency(180us, 10'000, {1, 2, 4, 8, 16, 32, 64}, 3, Storage(10'000, 70e-6, 180e-6, trials));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->enough, 4);                          // 4 reads of 250 us give 16,000/s; 2 give 8,000
  EXPECT_NEAR(answer->levels[0].kept.value, 0.4, 1e-9);  // 4,000/s of 10,000
  EXPECT_EQ(answer->levels.size(), 4U);                  // 1, 2, 4, 8
  EXPECT_EQ(trials, 4 * 2 * 3);
}

TEST(MeasureLatency, SaysWhereNoDepthIsEnough) {
  int trials = 0;
  const auto answer = MeasureLatency(10ms, 10'000, {1, 2}, 2, Storage(10'000, 70e-6, 10e-3, trials));
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->enough);
}

TEST(MeasureLatency, ErrorsOfATrialEndIt) {
  const auto answer = MeasureLatency(1ms, 1, {1}, 1, [](int, bool, int) -> Result<double> {
    return Fail(ErrorCode::kCancelled, "stopped");
  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace weir::probe
