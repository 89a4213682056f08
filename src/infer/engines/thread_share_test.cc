#include "infer/engines/thread_share.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

std::pair<int, int> Share(int threads, int streams, int usable) {
  const auto share = ShareThreads({.threads = threads, .streams = streams}, usable);
  CHECK(share.has_value());
  return {share->threads, share->streams};
}

TEST(ShareThreads, ZeroIsAllThreadsAndAStreamForEach) {
  EXPECT_EQ(Share(0, 1, 8), std::pair(8, 1));
  EXPECT_EQ(Share(0, 0, 8), std::pair(8, 8));
  EXPECT_EQ(Share(3, 0, 8), std::pair(3, 3));
}

TEST(ShareThreads, NeverMoreThanTheProcessMayUse) {
  EXPECT_EQ(Share(64, 1, 2), std::pair(2, 1));
  EXPECT_EQ(Share(64, 64, 2), std::pair(2, 2));
  EXPECT_EQ(Share(1, 4, 2), std::pair(1, 1));
}

TEST(ShareThreads, NegativeNumbersAreNamed) {
  EXPECT_NE(ShareThreads({.threads = -1}, 2).error().message.find("threads"), std::string::npos);
  EXPECT_NE(ShareThreads({.streams = -1}, 2).error().message.find("streams"), std::string::npos);
}

}  // namespace
}  // namespace weir::infer
