#include "infer/engines/quantised.h"

#include <gtest/gtest.h>

#include "infer/testing/tiny_onnx.h"

namespace weir::infer {
namespace {

using testing::OnnxType;
using testing::SaveTinyOnnx;
using testing::WriteTinyOnnx;

TEST(Quantised, IsToldByTheOperatorsOfTheGraph) {
  EXPECT_FALSE(HasQuantisedOperators(WriteTinyOnnx({})));
  EXPECT_TRUE(HasQuantisedOperators(WriteTinyOnnx({.op_type = "ConvInteger"})));
  EXPECT_TRUE(
      HasQuantisedOperators(WriteTinyOnnx({.op_type = "DequantizeLinear", .input_type = OnnxType::kUint8})));
}

TEST(Quantised, APrecisionSaysWhatTheModelChose) {
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(PrecisionInForce(SaveTinyOnnx(folder, "weir_float.onnx", {}), "f32"), "f32");
  EXPECT_EQ(PrecisionInForce(SaveTinyOnnx(folder, "weir_int8.onnx", {.op_type = "ConvInteger"}), "f32"),
            "f32 (quantised model: int8 where the engine can)");
  EXPECT_EQ(PrecisionInForce(folder + "weir_none.onnx", "f32").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir::infer
