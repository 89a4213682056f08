#include "load/generator/schedule.h"

#include <gmock/gmock.h>

#include <cmath>

namespace weir::load {
namespace {

using testing::HasSubstr;

Schedule Make(RxTimestamps arrivals, double rate, uint64_t seed = 1) {
  auto schedule = Schedule::Create(std::move(arrivals), rate, Seed(seed));
  CHECK(schedule.has_value());
  return *std::move(schedule);
}

// The mean of the gaps and their standard deviation over it.
std::pair<double, double> GapsOf(Schedule schedule, int count) {
  double last = 0, sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double now = Seconds(schedule.Next());
    sum += now - last;
    squares += (now - last) * (now - last);
    last = now;
  }
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

TEST(Schedule, IsExactWhenConstantWhateverTheNumber) {
  Schedule schedule = Make(ConstantArrivals{}, 3);
  EXPECT_EQ(schedule.Next(), 0ns);
  EXPECT_EQ(schedule.Next(), 333333333ns);
  EXPECT_EQ(schedule.Next(), 666666667ns);
  Duration last{};
  for (int i = 3; i <= 3'000'000; ++i) last = schedule.Next();
  EXPECT_EQ(last, std::chrono::seconds(1'000'000));
}

TEST(Schedule, HasExponentialGapsWhenPoisson) {
  const auto [mean, variation] = GapsOf(Make(PoissonArrivals{}, 1000), 200'000);
  EXPECT_NEAR(mean, 1e-3, 1e-5);
  EXPECT_NEAR(variation, 1, 0.02);
}

TEST(Schedule, HasTheVariationAskedForWhenGamma) {
  for (const double wanted : {0.25, 1.0, 3.0}) {
    const auto [mean, variation] = GapsOf(Make(GammaArrivals{wanted}, 1000), 400'000);
    EXPECT_NEAR(mean, 1e-3, 2e-5) << wanted;
    EXPECT_NEAR(variation, wanted, 0.04 * wanted);
  }
}

TEST(Schedule, NeverGoesBack) {
  for (const RxTimestamps& arrivals :
       {RxTimestamps(ConstantArrivals{}), RxTimestamps(PoissonArrivals{}), RxTimestamps(GammaArrivals{5})}) {
    Schedule schedule = Make(arrivals, 1e6);
    Duration last{};
    for (int i = 0; i < 10'000; ++i) {
      const Duration next = schedule.Next();
      ASSERT_GE(next, last);
      last = next;
    }
  }
}

TEST(Schedule, IsTheSameForTheSameSeedAndAnotherForAnother) {
  Schedule one = Make(PoissonArrivals{}, 100, 7), same = Make(PoissonArrivals{}, 100, 7),
           other = Make(PoissonArrivals{}, 100, 8);
  EXPECT_EQ(one.Next(), same.Next());
  EXPECT_NE(one.Next(), other.Next());
}

TEST(Schedule, TakesTheGapsOfATraceInTurn) {
  const auto trace = ParseTrace("100\r\n200.5\n\n");
  ASSERT_TRUE(trace.has_value());
  EXPECT_NEAR(RateOf(*trace), 2 / 300.5e-6, 1e-6);
  Schedule schedule = Make(*trace, 0);
  EXPECT_EQ(schedule.Next(), 100us);
  EXPECT_EQ(schedule.Next(), 300500ns);
  EXPECT_EQ(schedule.Next(), 400500ns);
}

TEST(Schedule, NamesTheLineOfATraceThatIsNoTime) {
  EXPECT_THAT(ParseTrace("1\nx\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(ParseTrace("1\n-1\n").error().message, HasSubstr("line 2"));
  EXPECT_THAT(ParseTrace("1e99\n").error().message, HasSubstr("line 1"));
  EXPECT_THAT(ParseTrace("nan\n").error().message, HasSubstr("line 1"));
  EXPECT_FALSE(ParseTrace("").has_value());
  EXPECT_FALSE(ParseTrace("0\n0\n").has_value());
}

TEST(Schedule, RefusesRatesThatAreNone) {
  EXPECT_FALSE(Schedule::Create(ConstantArrivals{}, 1, Seed(1), {.every = 2, .first = 2}).has_value());
  EXPECT_FALSE(Schedule::Create(PoissonArrivals{}, 0, Seed(1)).has_value());
  EXPECT_FALSE(Schedule::Create(ConstantArrivals{}, std::nan(""), Seed(1)).has_value());
  EXPECT_FALSE(Schedule::Create(GammaArrivals{0}, 10, Seed(1)).has_value());
}

TEST(Schedule, SharesOfItAreTogetherTheWhole) {
  for (const RxTimestamps& arrivals :
       {RxTimestamps(ConstantArrivals{}), RxTimestamps(PoissonArrivals{}), RxTimestamps(GammaArrivals{2}),
        RxTimestamps(TraceArrivals{{1ms, 5ms, 2ms}})}) {
    Schedule whole = *Schedule::Create(arrivals, 100, Seed(3));
    Schedule shares[] = {*Schedule::Create(arrivals, 100, Seed(3), {.every = 3, .first = 0}),
                         *Schedule::Create(arrivals, 100, Seed(3), {.every = 3, .first = 1}),
                         *Schedule::Create(arrivals, 100, Seed(3), {.every = 3, .first = 2})};
    for (int i = 0; i < 90; ++i) ASSERT_EQ(shares[i % 3].Next(), whole.Next());
  }
}

}  // namespace
}  // namespace weir::load
