#include "load/session/balance.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(Balance, CallsAreAddedAndTakenAwayByServer) {
  std::vector<infer::ServerCalls> sum{{.server = "a", .answered = 1, .moved = 2}};
  AddCalls({{.server = "a", .answered = 4, .failed = 1}, {.server = "b", .answered = 3}}, sum);
  ASSERT_EQ(sum.size(), 2U);
  EXPECT_EQ(sum[0].answered, 5U);
  EXPECT_EQ(sum[0].moved, 2U);
  const auto since = CallsSince({{.server = "a", .answered = 2, .failed = 1}}, sum);
  EXPECT_EQ(since[0].answered, 3U);
  EXPECT_EQ(since[0].failed, 0U);
  EXPECT_EQ(since[1].answered, 3U);
}

}  // namespace
}  // namespace weir::load
