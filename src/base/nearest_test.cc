#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

TEST(Nearest, FindsWhatWasMeantAndNothingFarOff) {
  const std::vector<std::string_view> known{"repeats", "reference", "factors", "batch"};
  EXPECT_EQ(Nearest("repeat", known), "repeats");
  EXPECT_EQ(Nearest("factor", known), "factors");
  EXPECT_EQ(Nearest("bacth", known), "batch");
  EXPECT_EQ(Nearest("speed", known), std::nullopt);
  EXPECT_EQ(Nearest("", known), std::nullopt);
}

}  // namespace
}  // namespace weir
