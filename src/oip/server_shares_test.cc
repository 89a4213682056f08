#include "oip/server_shares.h"

#include <gtest/gtest.h>

namespace weir::oip {
namespace {

TEST(SharesOf, CountsTheAnswersOfEachServer) {
  EXPECT_FALSE(SharesOf(infer::Balance::kRoundRobin, {}));
  const auto shares =
      SharesOf(infer::Balance::kRoundRobin, {{.server = "a", .answered = 3}, {.server = "b", .answered = 1}});
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->each[0].share, 0.75);
  EXPECT_EQ(shares->imbalance, 0.5);
}

}  // namespace
}  // namespace weir::oip
