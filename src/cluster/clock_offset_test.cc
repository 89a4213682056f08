#include "cluster/clock_offset.h"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

constexpr Duration kTrue = 1234567us;

// A round trip whose ways take so long, begun at `sent`.
void Add(OffsetEstimator& estimator, Instant sent, Duration out, Duration back) {
  estimator.Add(sent, sent + out + kTrue, sent + out + back);
}

TEST(OffsetEstimator, KeepsTheLeastRoundTrip) {
  OffsetEstimator estimator;
  EXPECT_FALSE(estimator.Best());
  Add(estimator, Instant(1s), 900us, 100us);
  EXPECT_EQ(estimator.Best()->error, 500us);
  Add(estimator, Instant(2s), 11us, 9us);
  Add(estimator, Instant(3s), 50us, 400us);
  ASSERT_TRUE(estimator.Best());
  EXPECT_EQ(estimator.Best()->error, 10us);
  EXPECT_EQ(estimator.Best()->offset, kTrue + 1us);
}

TEST(OffsetEstimator, NeverErrsByMoreThanItSays) {
  for (const Duration out : {0us, 3us, 20us, 40us}) {
    OffsetEstimator estimator;
    Add(estimator, Instant(5s), out, 40us - out);
    EXPECT_LE(std::chrono::abs(estimator.Best()->offset - kTrue), estimator.Best()->error);
  }
}

TEST(ClockOffset, TurnsMomentsThereAndBack) {
  const ClockOffset clock{.offset = 7ms, .error = 1us};
  EXPECT_EQ(clock.There(Instant(1s)), Instant(1007ms));
  EXPECT_EQ(clock.Here(clock.There(Instant(1s))), Instant(1s));
}

}  // namespace
}  // namespace weir::cluster
