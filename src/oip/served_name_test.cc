#include "oip/served_name.h"

#include <gtest/gtest.h>

namespace weir::oip {
namespace {

TEST(ServedAs, NamesTheModelThatTakesThePayload) {
  EXPECT_EQ(ServedAs("m", "tensor"), "m");
  EXPECT_EQ(ServedAs("m", "image"), "m.image");
  EXPECT_EQ(ServedAs("m.image", "image"), "m.image");
  EXPECT_EQ(ServedAs("m.pixels", "tensor"), "m.pixels");
  EXPECT_EQ(ServedAs("m.identify", "image"), "m.identify") << "it takes encoded pictures itself";
  EXPECT_EQ(ServedAs("m.identify", "pixels"), "m.identify.pixels");
}

}  // namespace
}  // namespace weir::oip
