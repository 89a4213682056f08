#include "oip/served_name.h"

#include <gtest/gtest.h>

namespace weir::oip {
namespace {

TEST(ServedAs, NamesTheModelThatTakesThePayload) {
  EXPECT_EQ(ServedAs("m", infer::Payload::kTensor), "m");
  EXPECT_EQ(ServedAs("m", infer::Payload::kImage), "m.image");
  EXPECT_EQ(ServedAs("m.image", infer::Payload::kImage), "m.image");
  EXPECT_EQ(ServedAs("m.pixels", infer::Payload::kTensor), "m.pixels");
  EXPECT_EQ(ServedAs("m.identify", infer::Payload::kImage), "m.identify")
      << "it takes encoded pictures itself";
  EXPECT_EQ(ServedAs("m.identify", infer::Payload::kPixels), "m.identify.pixels");
}

}  // namespace
}  // namespace weir::oip
