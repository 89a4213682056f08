#include "infer/server_times.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

TEST(MeanTimesOf, IsAbsentWhereNoRequestSucceeded) {
  PhaseTotals since;
  since.fail = {.count = 3, .total = 5ms};
  EXPECT_FALSE(MeanTimesOf(since).has_value());
}

TEST(MeanTimesOf, DividesEachPhaseByTheRequests) {
  const auto times = MeanTimesOf({.rows = 40,
                                  .batches = 5,
                                  .success = {.count = 10, .total = 100ms},
                                  .queue = {.count = 10, .total = 20ms},
                                  .compute_input = {.count = 10, .total = 5ms},
                                  .compute_infer = {.count = 10, .total = 60ms},
                                  .compute_output = {.count = 10, .total = 1ms}});
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(times->requests, 10);
  EXPECT_DOUBLE_EQ(times->rows_per_batch, 8);
  EXPECT_DOUBLE_EQ(times->queue_ms, 2);
  EXPECT_DOUBLE_EQ(times->compute_input_ms, 0.5);
  EXPECT_DOUBLE_EQ(times->compute_infer_ms, 6);
  EXPECT_DOUBLE_EQ(times->compute_output_ms, 0.1);
  EXPECT_DOUBLE_EQ(times->request_ms, 10);
  EXPECT_NEAR(times->rest_ms(), 1.4, 1e-12);
}

TEST(MeanTimesOf, CountsAnOverlapOfThePhasesOnce) {
  const auto times = MeanTimesOf({.success = {.count = 1, .total = 10ms},
                                  .queue = {.count = 1, .total = 4ms},
                                  .compute_input = {.count = 1, .total = 3ms},
                                  .compute_infer = {.count = 1, .total = 6ms}});
  ASSERT_TRUE(times.has_value());
  EXPECT_DOUBLE_EQ(times->compute_input_ms, 0);
  EXPECT_DOUBLE_EQ(times->queue_ms, 4);
  EXPECT_DOUBLE_EQ(times->compute_infer_ms, 6);
  EXPECT_DOUBLE_EQ(times->rest_ms(), 0);
  EXPECT_EQ(times->rows_per_batch, 0) << "a server that counts no batches";
}

TEST(CountOverlapOnce, TakesFromThePartsInTurnAndKeepsTheSum) {
  double rest = -5, first = 2, second = 4, third = 7;
  CountOverlapOnce(rest, {&first, &second, &third});
  EXPECT_EQ(rest, 0);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(third, 7);
  rest = -10;
  CountOverlapOnce(rest, {&second, &third});
  EXPECT_EQ(rest, -2) << "more than all of them";
  EXPECT_EQ(second + third, 0);
  rest = 3;
  CountOverlapOnce(rest, {&second});
  EXPECT_EQ(rest, 3);
}

}  // namespace
}  // namespace weir::infer
