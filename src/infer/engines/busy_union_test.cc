#include "infer/engines/busy_union.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

Instant At(int ms) { return Instant{} + Duration(std::chrono::milliseconds(ms)); }

TEST(BusyUnion, CountsTimeOnce) {
  BusyUnion busy;
  busy.Add(At(2), At(5));
  busy.Add(At(0), At(10));  // around it, and it ended later
  EXPECT_EQ(busy.sum(), Duration(10ms));
  busy.Add(At(20), At(30));
  busy.Add(At(8), At(22));  // joins the two
  EXPECT_EQ(busy.sum(), Duration(30ms));
  busy.Add(At(30), At(31));
  busy.Add(At(5), At(5));
  EXPECT_EQ(busy.sum(), Duration(31ms));
}

TEST(BusyUnion, KeepsWhatIsLongOver) {
  BusyUnion busy;
  for (int i = 0; i < 100'000; ++i) busy.Add(At(2 * i), At(2 * i + 1));
  EXPECT_EQ(busy.sum(), Duration(100s));
}

}  // namespace
}  // namespace weir::infer
