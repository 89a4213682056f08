#include "base/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const int threads : {0, 1, 3, 200}) {
    std::vector<int> calls(100, 0);  // each written by one thread
    ParallelFor("test", std::ssize(calls), threads, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    EXPECT_THAT(calls, testing::Each(1)) << threads;
  }
  ParallelFor("test", 0, 3, [](int64_t) { FAIL(); });
}

TEST(ParallelFor, UsesTheCallersThreadForOne) {
  ParallelFor("test", 5, 1, [caller = std::this_thread::get_id()](int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

}  // namespace
}  // namespace weir
