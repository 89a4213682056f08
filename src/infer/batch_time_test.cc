#include "infer/batch_time.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

constexpr Instant kStart{100s};

TEST(BatchTime, IsNotKnownBeforeEightBatches) {
  BatchTime time;
  for (int i = 0; i < 7; ++i) time.Add(5ms, kStart);
  EXPECT_FALSE(time.Least(kStart));
  time.Add(5ms, kStart);
  EXPECT_EQ(time.Least(kStart), 5ms);
}

TEST(BatchTime, IsTheShortestOfTheLastEight) {
  BatchTime time;
  time.Add(1ms, kStart);
  for (int i = 0; i < 7; ++i) time.Add(Duration(9ms) - i * Duration(1ms), kStart);
  EXPECT_EQ(time.Least(kStart), 1ms);
  time.Add(9ms, kStart);  // the first is forgotten
  EXPECT_EQ(time.Least(kStart), 3ms);
}

TEST(BatchTime, IsForgottenWhenNothingEndsForASecondAndTwoBatches) {
  BatchTime time;
  for (int i = 0; i < 8; ++i) time.Add(3s, kStart);
  EXPECT_EQ(time.Least(kStart + 7s), 3s);
  EXPECT_FALSE(time.Least(kStart + 7s + 1ns));
  time.Add(2ms, kStart + 8s);
  EXPECT_EQ(time.Least(kStart + 8s), 2ms);
}

}  // namespace
}  // namespace weir::infer
