#include "base/count.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Count, PutsCommasBetweenThousands) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(-999), "-999");
  EXPECT_EQ(Count(-1000), "-1,000");
}

TEST(Count, HasMoreThanOneOfMostThings) {
  EXPECT_EQ(Count(1, "trial"), "1 trial");
  EXPECT_EQ(Count(0, "trial"), "0 trials");
  EXPECT_EQ(Count(1500, "trial"), "1,500 trials");
}

}  // namespace
}  // namespace weir
