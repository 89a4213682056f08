#include "infer/half.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::infer {
namespace {

template <typename T>
float Back(double value) {
  return static_cast<float>(T(value));
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Fp16(1.0).bits, 0x3c00);
  EXPECT_EQ(Fp16(-2.0).bits, 0xc000);
  EXPECT_EQ(Fp16(2049).bits, Fp16(2048).bits);
  EXPECT_EQ(Fp16(2051).bits, Fp16(2052).bits);
  EXPECT_EQ(Fp16(65504).bits, 0x7bff);
  EXPECT_EQ(Fp16(0x1.0p-24).bits, 0x0001);  // the smallest
  EXPECT_EQ(Fp16(0x1.0p-26).bits, 0x0000);
  EXPECT_EQ(Bf16(1.0).bits, 0x3f80);
  EXPECT_EQ(Bf16(257).bits, Bf16(256).bits);
  EXPECT_EQ(Bf16(259).bits, Bf16(260).bits);
}

TEST(Half, KeepsWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Back<Fp16>(65520), kInfinity);
  EXPECT_EQ(Back<Bf16>(-1e39), -kInfinity);
  EXPECT_EQ(Back<Fp16>(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(Back<Fp16>(std::nan(""))));
  EXPECT_TRUE(std::isnan(Back<Bf16>(std::nan(""))));
}

template <typename T>
void EveryValueComesBack() {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(T(wide).bits, value.bits) << wide;
  }
}

TEST(Half, EveryValueComesBackFromAFloat) {
  EveryValueComesBack<Fp16>();
  EveryValueComesBack<Bf16>();
}

}  // namespace
}  // namespace weir::infer
