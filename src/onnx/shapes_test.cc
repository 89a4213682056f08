#include "onnx/shapes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "onnx/testing/graph_builder.h"

namespace weir::onnx {
namespace {

using testing::Attributes;
using testing::GraphBuilder;
using Sizes = std::vector<int64_t>;

struct Case {
  std::string type;
  Sizes data;                    // shape of input 0
  std::vector<Sizes> constants;  // contents of further inputs
  Attributes attributes;
  Sizes output;
};

class ShapeRules : public ::testing::TestWithParam<Case> {};

// Expected shapes follow the operator's definition in ONNX's Operators.md.
TEST_P(ShapeRules, GiveTheShapeOfTheDefinition) {
  const Case& c = GetParam();
  GraphBuilder b;
  b.Input("x", c.data);
  std::vector<std::string> inputs = {"x"};
  for (size_t i = 0; i < c.constants.size(); ++i) {
    inputs.push_back("c" + std::to_string(i));
    b.Constant(inputs.back(), c.constants[i]);
  }
  b.Node(c.type, inputs, {"y"}, c.attributes).Output("y");
  Net net = MakeNet(b.model());
  PropagateShapes(net, 1);
  EXPECT_EQ(net.values[net.outputs[0]].dims, c.output);
}

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShapeRules,
    ::testing::Values(
        Case{"MaxPool",
             {1, 2, 112, 112},
             {},
             {{"kernel_shape", Sizes{3, 3}}, {"strides", Sizes{2, 2}}, {"pads", Sizes{1, 1, 1, 1}}},
             {1, 2, 56, 56}},
        Case{"MaxPool",
             {1, 2, 6, 6},
             {},
             {{"kernel_shape", Sizes{3, 3}}, {"strides", Sizes{2, 2}}, {"ceil_mode", int64_t{1}}},
             {1, 2, 3, 3}},
        Case{"AveragePool",
             {1, 2, 7, 7},
             {},
             {{"kernel_shape", Sizes{2, 2}},
              {"strides", Sizes{2, 2}},
              {"auto_pad", std::string("SAME_UPPER")}},
             {1, 2, 4, 4}},
        Case{"MaxPool",
             {1, 2, 8, 8},
             {},
             {{"kernel_shape", Sizes{3, 3}}, {"dilations", Sizes{2, 2}}},
             {1, 2, 4, 4}},
        Case{"MaxPool", {1, 2, 8, 8}, {}, {{"kernel_shape", Sizes{9, 9}}}, {1, 2, -1, -1}},
        Case{"GlobalAveragePool", {1, 2, 7, 7}, {}, {}, {1, 2, 1, 1}},
        Case{"Flatten", {2, 3, 4}, {}, {{"axis", int64_t{-1}}}, {6, 4}},
        Case{"Reshape", {2, 3, 4}, {{0, -1}}, {}, {2, 12}},
        Case{"Reshape", {2, 3, 4}, {{5, -1}}, {}, {5, -1}}, Case{"Transpose", {2, 3, 4}, {}, {}, {4, 3, 2}},
        Case{"Transpose", {2, 3, 4}, {}, {{"perm", Sizes{1, 0, 2}}}, {3, 2, 4}},
        Case{"Squeeze", {1, 3, 1}, {}, {}, {3}}, Case{"Squeeze", {1, 3, 1}, {{-1}}, {}, {1, 3}},
        Case{"Unsqueeze", {3, 4}, {{0, -1}}, {}, {1, 3, 4, 1}},
        Case{"Slice", {10, 10}, {{1, -3}, {kEnd, -1}, {0, 1}}, {}, {9, 2}},
        Case{"Slice", {10}, {{-1}, {std::numeric_limits<int64_t>::min()}, {0}, {-2}}, {}, {5}},
        Case{"Slice", {10, 4}, {}, {{"starts", Sizes{2}}, {"ends", Sizes{20}}, {"axes", Sizes{0}}}, {8, 4}},
        Case{"Pad", {1, 2, 5, 5}, {{0, 0, 1, 2, 0, 0, 3, 4}}, {}, {1, 2, 9, 11}},
        Case{"Expand", {3, 1}, {{2, 1, 6}}, {}, {2, 3, 6}}, Case{"Tile", {2, 3}, {{4, 1}}, {}, {8, 3}},
        Case{"ReduceMean", {2, 3, 4}, {}, {{"axes", Sizes{-1, 1}}, {"keepdims", int64_t{0}}}, {2}},
        Case{"ReduceSum", {2, 3, 4}, {{1}}, {}, {2, 1, 4}}, Case{"ReduceMax", {2, 3}, {}, {}, {1, 1}},
        Case{"ArgMax", {2, 3, 4}, {}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, {2, 4}},
        Case{"TopK", {2, 100}, {{5}}, {}, {2, 5}},
        Case{"DepthToSpace", {1, 16, 4, 4}, {}, {{"blocksize", int64_t{2}}}, {1, 4, 8, 8}},
        Case{"SpaceToDepth", {1, 4, 8, 8}, {}, {{"blocksize", int64_t{2}}}, {1, 16, 4, 4}},
        Case{"Gather", {5, 6}, {{0, 2}}, {{"axis", int64_t{1}}}, {5, 2}}));

// Attributes and constants that no good model has: no size may come of them, and nothing may break.
TEST(Shapes, HoldForAttributesWithoutSense) {
  const int64_t huge = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  for (const int64_t odd : {int64_t{0}, int64_t{-1}, huge, least}) {
    GraphBuilder b;
    b.Input("x", {1, 4, 8, 8}).Weight("w", {4, 4, 3, 3}).Constant("c", {odd, odd, odd, odd});
    const Attributes all = {{"strides", Sizes{odd, odd}},
                            {"kernel_shape", Sizes{odd, odd}},
                            {"pads", Sizes{odd, odd, odd, odd}},
                            {"dilations", Sizes{odd, odd}},
                            {"group", odd},
                            {"axis", odd},
                            {"blocksize", odd},
                            {"output_padding", Sizes{odd, odd}},
                            {"output_shape", Sizes{odd, odd}},
                            {"batch_dims", odd}};
    for (const char* type :
         {"Conv", "ConvTranspose", "MaxPool", "DepthToSpace", "SpaceToDepth", "Softmax", "Flatten", "Concat",
          "ArgMax", "Gather", "GatherND", "Split", "TopK", "Gemm", "MatMul", "LSTM"}) {
      b.Node(type, {"x", "w", "c"}, {std::string(type) + "1"}, all);
    }
    for (const char* type : {"Reshape", "Expand", "Tile", "Pad", "Slice", "Squeeze", "Unsqueeze", "ReduceSum",
                             "Resize", "Range"}) {
      b.Node(type, {"x", "c", "c", "c", "c"}, {std::string(type) + "2"});
    }
    for (const char* type : {"ConstantOfShape", "Add", "Div", "Mod", "Range"})
      b.Node(type, {"c", "c", "c"}, {std::string(type) + "3"});
    Net net = MakeNet(b.model());
    PropagateShapes(net, 1);
    for (const Value& value : net.values) {
      if (!value.dims) continue;
      for (const int64_t dim : *value.dims) EXPECT_GE(dim, -1);
    }
  }
}

TEST(Shapes, ResizeBySizesAndByScales) {
  GraphBuilder b;
  b.Input("x", {1, 3, 5, 7}).Constant("sizes", {1, 3, 10, 20}).Weight("scales", {4});
  for (const float scale : {1.0F, 1.0F, 2.0F, 0.5F}) b.graph().mutable_initializer(1)->add_float_data(scale);
  b.Node("Resize", {"x", "", "", "sizes"}, {"a"})
      .Node("Resize", {"x", "", "scales"}, {"b"})
      .Output("a")
      .Output("b");
  Net net = MakeNet(b.model());
  PropagateShapes(net, 1);
  EXPECT_EQ(net.values[net.outputs[0]].dims, (Sizes{1, 3, 10, 20}));
  EXPECT_EQ(net.values[net.outputs[1]].dims, (Sizes{1, 3, 10, 3}));
}

TEST(Shapes, SplitsEvenlyByDefaultAndBySizes) {
  GraphBuilder b;
  b.Input("x", {7, 2}).Constant("sizes", {3, 4});
  b.Node("Split", {"x"}, {"a", "b"})
      .Node("Split", {"x", "sizes"}, {"c", "d"})
      .Output("a")
      .Output("b")
      .Output("c")
      .Output("d");
  Net net = MakeNet(b.model());
  PropagateShapes(net, 1);
  const std::vector<int64_t> expected = {4, 3, 3, 4};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(net.values[net.outputs[i]].dims, (Sizes{expected[i], 2}));
}

TEST(Shapes, BelieveTheFileWhereNoRuleKnows) {
  GraphBuilder b;
  b.Input("x", {-1, 4}).Node("FutureOp", {"x"}, {"h"}).Node("Relu", {"h"}, {"y"}).Output("y");
  auto& info = *b.graph().add_value_info();
  info.set_name("h");
  info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("n");
  info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(9);
  Net net = MakeNet(b.model());
  PropagateShapes(net, 2);
  EXPECT_EQ(net.values[net.outputs[0]].dims, (Sizes{2, 9}));
}

}  // namespace
}  // namespace weir::onnx
