#include "infer/tensor.h"

#include <gtest/gtest.h>

namespace weir::infer {
namespace {

TEST(DType, NamesAreTheProtocolsAndComeBack) {
  for (int i = 0; i <= static_cast<int>(DType::kBytes); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(ToString(dtype)), dtype);
  }
  EXPECT_EQ(ToString(DType::kFp32), "FP32");
  EXPECT_EQ(ToString(DType::kUint8), "UINT8");
}

TEST(DType, UnknownNamesAreNamed) {
  const auto dtype = ParseDType("FLOAT32");
  ASSERT_FALSE(dtype);
  EXPECT_EQ(dtype.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(dtype.error().message.find("FLOAT32"), std::string::npos);
}

TEST(DType, HasTheSizeOfItsElements) {
  EXPECT_EQ(ByteSize(DType::kBool), 1u);
  EXPECT_EQ(ByteSize(DType::kBf16), 2u);
  EXPECT_EQ(ByteSize(DType::kFp32), 4u);
  EXPECT_EQ(ByteSize(DType::kInt64), 8u);
  EXPECT_EQ(ByteSize(DType::kBytes), 0u);
}

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(ElementCount({8, 3, 224, 224}), 1204224);
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({int64_t{1} << 62, 0, int64_t{1} << 62}), 0);
  EXPECT_EQ(ToString(Shape{8, 3, 224, 224}), "[8,3,224,224]");
}

TEST(Shape, NegativeDimensionsAndOverflowsAreErrors) {
  EXPECT_EQ(ElementCount({-1, 3}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ElementCount({0, -1}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ElementCount({int64_t{1} << 32, int64_t{1} << 31}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ElementCount({int64_t{1} << 31, int64_t{1} << 31}), int64_t{1} << 62);
}

}  // namespace
}  // namespace weir::infer
