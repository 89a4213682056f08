#include "load/generator/backoff.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(Backoff, DoublesUpToATenthOfASecond) {
  Backoff backoff;
  for (const Duration wait : {1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 100ms, 100ms})
    EXPECT_EQ(backoff.After(Outcome::kNoServer), wait);
}

TEST(Backoff, BeginsAnewOnceTheServerIsThere) {
  for (const Outcome outcome :
       {Outcome::kAnswered, Outcome::kRefused, Outcome::kTimedOut, Outcome::kFailed}) {
    Backoff backoff;
    EXPECT_EQ(backoff.After(Outcome::kNoServer), 1ms);
    EXPECT_EQ(backoff.After(Outcome::kNoServer), 2ms);
    EXPECT_EQ(backoff.After(outcome), 0ms);
    EXPECT_EQ(backoff.After(Outcome::kNoServer), 1ms);
  }
}

}  // namespace
}  // namespace weir::load
