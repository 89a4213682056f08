#include "http/work_pool.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

namespace weir::http {
namespace {

TEST(WorkPool, BeginsWorkInItsOrderAndFinishesItWhenItStops) {
  std::vector<int> done;
  WorkPool pool({.name = "test", .threads = 1});
  for (int i = 0; i < 100; ++i) {
    WorkPool::Work work = [&done, i] { done.push_back(i); };
    ASSERT_TRUE(pool.Offer(work));
  }
  pool.Stop();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(WorkPool, LeavesWorkWithItsCallerWhenTooMuchWaits) {
  std::latch begun(1), go_on(1);
  int done = 0;
  WorkPool pool({.name = "test", .threads = 1, .max_waiting = 1});
  WorkPool::Work first = [&] {
    begun.count_down();
    go_on.wait();
  };
  WorkPool::Work second = [&] { ++done; }, third = [&] { ++done; };
  ASSERT_TRUE(pool.Offer(first));
  begun.wait();
  ASSERT_TRUE(pool.Offer(second));
  EXPECT_FALSE(pool.Offer(third));
  ASSERT_TRUE(third) << "it is still the caller's";
  go_on.count_down();
  pool.Stop();
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(pool.Offer(third)) << "it has stopped";
}

}  // namespace
}  // namespace weir::http
