#include "launch/network/rate_schedule.h"

#include <gmock/gmock.h>

namespace weir::launch {
namespace {

using testing::HasSubstr;

RateSchedule Make(const RateSchedule::Options& options) {
  auto schedule = RateSchedule::Create(options);
  EXPECT_TRUE(schedule.has_value()) << schedule.error().message;
  return std::move(*schedule);
}

Duration LengthOf(const RateSchedule& schedule, size_t step) {
  const auto& steps = schedule.steps();
  return (step + 1 < steps.size() ? steps[step + 1].begin : schedule.length()) - steps[step].begin;
}

// The definition of the mean, in whole nanoseconds: sum of rate times time over time.
double MeanOf(const RateSchedule& schedule, size_t first, size_t count) {
  double passed = 0, time = 0;
  for (size_t i = first; i < first + count; ++i) {
    passed += schedule.steps()[i].gbit_per_s * static_cast<double>(LengthOf(schedule, i).count());
    time += static_cast<double>(LengthOf(schedule, i).count());
  }
  return passed / time;
}

TEST(RateSchedule, HasTheMeanAskedForInEveryPairAndInAll) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    for (const auto& range : {std::pair{0.25, 1.75}, std::pair{0.1, 4.0}, std::pair{0.5, 1.0}}) {
      const RateSchedule schedule =
          Make({.lowest = range.first, .highest = range.second, .seed = Seed(seed)});
      ASSERT_EQ(schedule.steps().size() % 2, 0U);
      for (size_t i = 0; i < schedule.steps().size(); i += 2) EXPECT_NEAR(MeanOf(schedule, i, 2), 5, 5e-12);
      EXPECT_NEAR(MeanOf(schedule, 0, schedule.steps().size()), 5, 5e-12);
    }
  }
}

TEST(RateSchedule, StaysWithinItsRangesAndReachesFarIntoThem) {
  const RateSchedule schedule = Make({.mean_gbit_per_s = 2, .length = 1000s});
  double lowest = 100, highest = 0;
  Duration shortest = 100s, longest{};
  for (size_t i = 0; i < schedule.steps().size(); ++i) {
    lowest = std::min(lowest, schedule.steps()[i].gbit_per_s);
    highest = std::max(highest, schedule.steps()[i].gbit_per_s);
    shortest = std::min(shortest, LengthOf(schedule, i));
    longest = std::max(longest, LengthOf(schedule, i));
  }
  EXPECT_GE(lowest, 0.5 - 1e-12);
  EXPECT_LT(lowest, 0.7);
  EXPECT_LE(highest, 3.5 + 1e-12);
  EXPECT_GT(highest, 3.2);
  EXPECT_GE(shortest, 500ms);
  EXPECT_LT(shortest, 560ms);
  EXPECT_LE(longest, 2s);
  EXPECT_GT(longest, 1940ms);
  EXPECT_NEAR(static_cast<double>(schedule.steps().size()), 800, 1);  // of 1.25 s, the middle
}

TEST(RateSchedule, FillsTheTimeThatIsMeasured) {
  for (const Duration length : {Duration(1s), Duration(3s), Duration(7123456789ns), Duration(60s)}) {
    const RateSchedule schedule = Make({.length = length});
    EXPECT_EQ(schedule.length(), length);
    EXPECT_NEAR(schedule.MeanBetween(0s, length), 5, 5e-12);
    for (size_t i = 0; i < schedule.steps().size(); ++i) {
      EXPECT_GE(LengthOf(schedule, i), 500ms);
      EXPECT_LE(LengthOf(schedule, i), 2s);
    }
  }
}

TEST(RateSchedule, IsMadeLongerWhereStepsCannotFillTheLength) {
  EXPECT_EQ(Make({.length = 300ms}).length(), 1s);
  EXPECT_EQ(Make({.shortest = 1s, .longest = 1s, .length = 9s}).length(), 10s);
}

TEST(RateSchedule, OfStepsOfOneLengthIsAsFarAboveAsBelow) {
  const RateSchedule schedule = Make({.shortest = 1s, .longest = 1s, .length = 10s});
  ASSERT_EQ(schedule.steps().size(), 10U);
  for (size_t i = 0; i < 10; i += 2)
    EXPECT_NEAR(schedule.steps()[i].gbit_per_s + schedule.steps()[i + 1].gbit_per_s, 10, 1e-12);
}

TEST(RateSchedule, TellsTheRateAndTheNextChangeAtAnyMoment) {
  const RateSchedule schedule = Make({.length = 10s});
  const auto& steps = schedule.steps();
  EXPECT_EQ(schedule.RateAt(-1s), steps[0].gbit_per_s);
  EXPECT_EQ(schedule.NextChange(-1s), steps[1].begin);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Duration end = steps[i].begin + LengthOf(schedule, i);
    EXPECT_EQ(schedule.RateAt(steps[i].begin), steps[i].gbit_per_s);
    EXPECT_EQ(schedule.RateAt(end - 1ns), steps[i].gbit_per_s);
    EXPECT_EQ(schedule.NextChange(steps[i].begin), end);
    EXPECT_EQ(schedule.NextChange(end - 1ns), end);
    EXPECT_EQ(schedule.RateAt(steps[i].begin + 30s), steps[i].gbit_per_s) << "again from the beginning";
    EXPECT_EQ(schedule.NextChange(steps[i].begin + 30s), end + 30s);
  }
}

TEST(RateSchedule, TellsTheMeanOfAnyTime) {
  const RateSchedule schedule = Make({.length = 10s});
  const auto& steps = schedule.steps();
  EXPECT_NEAR(schedule.MeanBetween(0s, 1ms), steps[0].gbit_per_s, 1e-9);
  const Duration a = steps[1].begin - 100ms, b = steps[1].begin + 300ms;
  EXPECT_NEAR(schedule.MeanBetween(a, b), steps[0].gbit_per_s * 0.25 + steps[1].gbit_per_s * 0.75, 1e-9);
  EXPECT_NEAR(schedule.MeanBetween(3s, 43s), 5, 1e-9) << "four rounds, wherever they begin";
}

TEST(RateSchedule, ComesFromItsSeedAlone) {
  const auto rates = [](uint64_t seed) {
    std::vector<std::pair<Duration, double>> all;
    const RateSchedule schedule = Make({.seed = Seed(seed)});
    for (const auto& step : schedule.steps()) all.emplace_back(step.begin, step.gbit_per_s);
    return all;
  };
  EXPECT_EQ(rates(7), rates(7));
  EXPECT_NE(rates(7), rates(8));
}

TEST(RateSchedule, NamesWhatCannotBe) {
  const auto message = [](const RateSchedule::Options& options) {
    const auto schedule = RateSchedule::Create(options);
    return schedule ? "" : schedule.error().message;
  };
  EXPECT_THAT(message({.mean_gbit_per_s = 0}), HasSubstr("its mean of 0 Gbit/s is not above 0"));
  EXPECT_THAT(message({.lowest = 0}), HasSubstr("its lowest rate is 0 of the mean"));
  EXPECT_THAT(message({.lowest = 1.5}), HasSubstr("its lowest rate is 1.5 of the mean"));
  EXPECT_THAT(message({.highest = 0.9}), HasSubstr("its highest rate is 0.9 of the mean"));
  EXPECT_THAT(message({.shortest = 2s, .longest = 1s}), HasSubstr("steps of 2 to 1 s"));
  EXPECT_THAT(message({.length = 0s}), HasSubstr("a length of 0 s"));
}

}  // namespace
}  // namespace weir::launch
