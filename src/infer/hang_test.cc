#include "infer/hang.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

constexpr Instant kStart(1000s);

TEST(ExpectedTime, KnowsNothingBeforeTheFirstBatchHasEnded) {
  ExpectedTime expected;
  EXPECT_FALSE(expected.Of(1).has_value());
  expected.Add(3ms, 1);
  EXPECT_EQ(expected.Of(1), Duration(3ms));
}

TEST(ExpectedTime, IsTheLongestOfTheLastEight) {
  ExpectedTime expected;
  for (const Duration took : {90ms, 2ms, 7ms, 3ms}) expected.Add(took, 4);
  EXPECT_EQ(expected.Of(4), Duration(90ms));
  for (int i = 0; i < 5; ++i) expected.Add(1ms, 4);
  EXPECT_EQ(expected.Of(4), Duration(7ms)) << "the first one is forgotten";
}

TEST(ExpectedTime, GrowsWithTheInputsAndShrinksWithNothing) {
  ExpectedTime expected;
  expected.Add(10ms, 100);
  EXPECT_EQ(expected.Of(6400), Duration(640ms));
  EXPECT_EQ(expected.Of(1), Duration(10ms));
  EXPECT_EQ(expected.Of(0), Duration(10ms));
}

TEST(ExpectedTime, DoesNotOverflow) {
  ExpectedTime expected;
  expected.Add(1000s, 0);
  EXPECT_EQ(expected.Of(SIZE_MAX), Duration(24h));
}

TEST(JudgeHang, WantsTenTimesTheExpectedTimeAndTenSeconds) {
  EXPECT_FALSE(JudgeHang(kStart, 1ms, kStart + 9999ms).has_value());
  EXPECT_TRUE(JudgeHang(kStart, 1ms, kStart + 10s).has_value());
  EXPECT_FALSE(JudgeHang(kStart, 5s, kStart + 49s).has_value());
  const auto hang = JudgeHang(kStart, 5s, kStart + 50s);
  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->running, Duration(50s));
  EXPECT_EQ(hang->expected, Duration(5s));
}

TEST(JudgeHang, ExemptsTheFirstBatch) {
  EXPECT_FALSE(JudgeHang(kStart, std::nullopt, kStart + 24h).has_value());
}

}  // namespace
}  // namespace weir::infer
