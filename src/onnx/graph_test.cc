#include "onnx/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "onnx/testing/graph_builder.h"

namespace weir::onnx {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;
using Sizes = std::vector<int64_t>;

GraphFacts FactsOf(const GraphBuilder& builder) {
  const Result<GraphFacts> facts = ParseGraph(builder.Bytes(), "");
  EXPECT_TRUE(facts.has_value()) << facts.error().message;
  return facts.value_or(GraphFacts{});
}

std::optional<int64_t> MultiplyAddsOf(const GraphBuilder& builder) {
  return FactsOf(builder).multiply_adds_per_item;
}

TEST(Graph, CountsAConvolution) {
  GraphBuilder b;
  b.Input("x", {-1, 3, 32, 32});
  b.Output(b.Convolution("x", 3, 8, 3, 2), {-1, 8, 16, 16});
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.parameters, 8 * 3 * 3 * 3 + 8);
  EXPECT_EQ(facts.multiply_adds_per_item, 8 * 16 * 16 * 3 * 3 * 3);
  EXPECT_EQ(facts.activations_per_item, 8 * 16 * 16);
  EXPECT_EQ(facts.depth, 1);
  EXPECT_EQ(facts.inner_modules, 0);
  EXPECT_TRUE(facts.batchable());
  EXPECT_EQ(facts.inputs[0].shape, (Sizes{-1, 3, 32, 32}));
  EXPECT_EQ(facts.inputs[0].datatype, "FP32");
}

TEST(Graph, CountsAGroupedConvolutionByItsGroups) {
  GraphBuilder b;
  b.Input("x", {-1, 16, 8, 8});
  b.Output(b.Convolution("x", 16, 32, 3, 1, 4));
  EXPECT_EQ(MultiplyAddsOf(b), 32 * 8 * 8 * (16 / 4) * 9);
}

TEST(Graph, CountsATransposedConvolutionByItsInput) {
  GraphBuilder b;
  b.Input("x", {-1, 16, 8, 8}).Weight("w", {16, 4, 2, 2});
  b.Node("ConvTranspose", {"x", "w"}, {"y"}, {{"strides", Sizes{2, 2}}}).Output("y");
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.multiply_adds_per_item, 16 * 8 * 8 * 4 * 2 * 2);
  EXPECT_EQ(facts.outputs[0].shape, (Sizes{-1, 4, 16, 16}));
}

TEST(Graph, CountsMatrixProductsOfDataButTheirOutputsAreNoActivations) {
  GraphBuilder b;
  b.Input("q", {-1, 12, 64, 32}).Input("k", {-1, 12, 32, 64}).Node("MatMul", {"q", "k"}, {"y"}).Output("y");
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.multiply_adds_per_item, 12 * 64 * 64 * 32);
  EXPECT_EQ(facts.activations_per_item, 0);
  EXPECT_EQ(facts.depth, 0);
}

TEST(Graph, CountsARecurrentLayerByStepsAndWeights) {
  GraphBuilder b;
  b.Input("x", {10, -1, 16}).Weight("w", {1, 128, 16}).Weight("r", {1, 128, 32}).Weight("b", {1, 256});
  b.Node("LSTM", {"x", "w", "r", "b"}, {"y"}).Output("y");
  b.model()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_value(1);
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.multiply_adds_per_item, 10 * (128 * 16 + 128 * 32));
  EXPECT_EQ(facts.parameters, 128 * 16 + 128 * 32 + 256);
}

TEST(Graph, DividesTheWorkOfABatchThatIsBuiltIn) {
  GraphBuilder b;
  b.Input("x", {8, 3, 32, 32});
  b.Output(b.Convolution("x", 3, 8, 3), {8, 8, 32, 32});
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.multiply_adds_per_item, 8 * 32 * 32 * 27);
  EXPECT_EQ(facts.fixed_batch, 8);
  EXPECT_THAT(facts.not_batchable, HasSubstr("input x has a fixed first dimension of 8"));
}

TEST(Graph, CountsAWeightThatIsComputedFromATableOnce) {
  GraphBuilder b;
  b.Input("x", {-1, 4, 8, 8}).Weight("codebook", {16, 9}).Weight("codes", {8, 4}, pb::TensorProto::UINT8);
  b.Constant("shape", {8, 4, 3, 3}).Weight("scale", {8, 1, 1, 1});
  b.Node("Gather", {"codebook", "codes"}, {"rows"}).Node("Reshape", {"rows", "shape"}, {"filters"});
  b.Node("Mul", {"filters", "scale"}, {"weight"}).Node("Conv", {"x", "weight"}, {"y"}).Output("y");
  EXPECT_EQ(FactsOf(b).parameters, 8 * 4 * 3 * 3);
}

TEST(Graph, CountsQuantizedWeightsButNotTheirScales) {
  GraphBuilder b;
  b.Input("x", {-1, 4, 8, 8}).Weight("scale", {}).Weight("zero", {}, pb::TensorProto::UINT8);
  b.Weight("w", {8, 4, 1, 1}, pb::TensorProto::UINT8)
      .Weight("w.scale", {8})
      .Weight("w.zero", {8}, pb::TensorProto::UINT8);
  b.Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
      .Node("DequantizeLinear", {"q", "scale", "zero"}, {"d"});
  b.Node("DequantizeLinear", {"w", "w.scale", "w.zero"}, {"weight"})
      .Node("Conv", {"d", "weight"}, {"y"})
      .Output("y");
  EXPECT_EQ(FactsOf(b).parameters, 8 * 4);
}

TEST(Graph, CountsOnlyWhatABatchNormalizationLearns) {
  GraphBuilder b;
  b.Input("x", {-1, 4, 8, 8}).Weight("s", {4}).Weight("b", {4}).Weight("m", {4}).Weight("v", {4});
  b.Node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}).Output("y");
  EXPECT_EQ(FactsOf(b).parameters, 8);
}

TEST(Graph, CountsTiedWeightsOnce) {
  GraphBuilder b;
  b.Input("ids", {-1, 7}, pb::TensorProto::INT64).Weight("table", {100, 16});
  b.Node("Gather", {"table", "ids"}, {"h"})
      .Node("Transpose", {"table"}, {"head"})
      .Node("MatMul", {"h", "head"}, {"y"})
      .Output("y");
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.parameters, 1600);
  EXPECT_EQ(facts.multiply_adds_per_item, 7 * 16 * 100);
}

TEST(Graph, LeavesShapesMasksAndSingleNumbersOutOfTheParameters) {
  GraphBuilder b;
  b.Input("x", {-1, 4})
      .Constant("shape", {-1, 2, 2})
      .Weight("half", {})
      .Weight("mask", {2, 2}, pb::TensorProto::BOOL);
  b.Weight("low", {2, 2}).Node("Mul", {"x", "half"}, {"s"}).Node("Reshape", {"s", "shape"}, {"r"});
  b.Node("Where", {"mask", "r", "low"}, {"y"}).Output("y");
  EXPECT_EQ(FactsOf(b).parameters, 4);
}

TEST(Graph, FollowsAShapeThatTheGraphComputes) {
  GraphBuilder b;
  b.Input("x", {-1, 8, 4, 4}).Constant("zero", {0}).Constant("rest", {-1});
  b.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"n"}, {{"axis", int64_t{0}}});
  b.Node("Concat", {"n", "rest"}, {"flat"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "flat"}, {"f"});
  b.Output(b.Dense("f", 128, 10));
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.multiply_adds_per_item, 1280);
  EXPECT_EQ(facts.parameters, 1280);
  EXPECT_EQ(facts.outputs[0].shape, (Sizes{-1, 10}));
}

TEST(Graph, LeavesTheWorkOfAnUnknownOperatorOpen) {
  GraphBuilder b;
  b.Input("x", {-1, 4}).Weight("w", {4, 4}).Node("FutureAttention", {"x", "w"}, {"y"}).Output("y", {-1, 4});
  const GraphFacts facts = FactsOf(b);
  EXPECT_FALSE(facts.multiply_adds_per_item.has_value());
  EXPECT_FALSE(facts.activations_per_item.has_value());
  EXPECT_EQ(facts.parameters, 16);
  EXPECT_TRUE(facts.batchable());
}

TEST(Graph, LeavesTheWorkOpenWhereADimensionIsFree) {
  GraphBuilder b;
  b.Input("x", {-1, 3, -1, -1});
  b.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(2)
      ->set_dim_param("height");
  b.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(3)
      ->set_dim_param("width");
  b.Output(b.Convolution("x", 3, 8, 3));
  const GraphFacts facts = FactsOf(b);
  EXPECT_FALSE(facts.multiply_adds_per_item.has_value());
  EXPECT_EQ(facts.parameters, 8 * 27 + 8);
  EXPECT_EQ(facts.depth, 1);
}

TEST(Graph, LeavesTheWorkOfALoopOpenButCountsItsWeights) {
  GraphBuilder b, body;
  body.Weight("w", {4, 4}).Node("MatMul", {"x", "w"}, {"out"}).Output("out");
  b.Input("x", {-1, 4}).Input("flag", {1}, pb::TensorProto::BOOL);
  b.Node("If", {"flag"}, {"y"}, {{"then_branch", body.graph()}, {"else_branch", body.graph()}}).Output("y");
  const GraphFacts facts = FactsOf(b);
  EXPECT_FALSE(facts.multiply_adds_per_item.has_value());
  EXPECT_FALSE(facts.depth.has_value());
  EXPECT_EQ(facts.parameters, 32);
}

TEST(Graph, WritesAModelLocalFunctionOutWithTheAttributesOfItsCall) {
  GraphBuilder b;
  auto& function = *b.model().add_functions();
  function.set_domain("local");
  function.set_name("Block");
  function.add_input("in");
  function.add_input("weight");
  function.add_output("out");
  GraphBuilder::AddNode(*function.add_node(), "Conv", {"in", "weight"}, {"c"});
  auto& stride = *function.mutable_node(0)->add_attribute();
  stride.set_name("strides");
  stride.set_ref_attr_name("step");
  GraphBuilder::AddNode(*function.add_node(), "Relu", {"c"}, {"out"});
  b.Input("x", {-1, 3, 9, 9}).Weight("w", {8, 3, 1, 1});
  b.Node("Block", {"x", "w"}, {"y"}, {{"step", Sizes{2, 2}}}).Output("y");
  b.graph().mutable_node(0)->set_domain("local");
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.outputs[0].shape, (Sizes{-1, 8, 5, 5}));
  EXPECT_EQ(facts.multiply_adds_per_item, 8 * 25 * 3);
}

TEST(Graph, KeepsInitializersOutOfTheInputs) {
  GraphBuilder b;
  b.Input("x", {-1, 4}).Input("w", {4, 2}).Weight("w", {4, 2}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  const GraphFacts facts = FactsOf(b);
  ASSERT_EQ(facts.inputs.size(), 1u);
  EXPECT_EQ(facts.inputs[0].name, "x");
}

TEST(Graph, TellsWhyAModelTakesNoOtherBatch) {
  GraphBuilder scalar, unknown, fixed;
  scalar.Input("x", {}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(FactsOf(scalar).not_batchable, HasSubstr("input x is a single number"));
  unknown.Input("x", {-1, 4}).Node("NonZero", {"x"}, {"i"}).Node("FutureOp", {"i"}, {"y"}).Output("y");
  EXPECT_THAT(FactsOf(unknown).not_batchable, HasSubstr("does not tell the shape of output y"));
  fixed.Input("x", {-1, 4}).Node("Relu", {"x"}, {"y"}).Output("y", {1, 4});
  EXPECT_THAT(FactsOf(fixed).not_batchable, HasSubstr("output y has a fixed first dimension of 1"));
}

TEST(Graph, LeavesAGraphOutOfOrderOpen) {
  GraphBuilder b;
  b.Input("x", {-1, 4})
      .Weight("w", {4, 4})
      .Node("MatMul", {"later", "w"}, {"y"})
      .Node("Relu", {"y"}, {"later"})
      .Output("y", {-1, 4});
  const GraphFacts facts = FactsOf(b);
  EXPECT_FALSE(facts.parameters.has_value());
  EXPECT_FALSE(facts.depth.has_value());
}

TEST(Graph, RefusesWhatIsNotOnnx) {
  for (const std::string& bytes :
       std::vector{std::string(), std::string("hello, world"), std::string("\0\0\0\0TFL3....", 12),
                   std::string("\x18\0\0\0ORTM", 8), std::string("PK\x03\x04")}) {
    const auto facts = ParseGraph(bytes, "");
    ASSERT_FALSE(facts.has_value());
    EXPECT_EQ(facts.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(facts.error().message, HasSubstr("not an ONNX file"));
  }
}

// ---- structure

// torchvision's ResNet with folded batch normalization: https://github.com/pytorch/vision, models/resnet.py
// (v1.5).
GraphBuilder Resnet(const std::array<int, 4>& blocks, bool bottleneck) {
  GraphBuilder b;
  b.Input("x", {-1, 3, 224, 224});
  b.Node("MaxPool", {b.Apply("Relu", {b.Convolution("x", 3, 64, 7, 2)})}, {"h"},
         {{"kernel_shape", Sizes{3, 3}}, {"strides", Sizes{2, 2}}, {"pads", Sizes{1, 1, 1, 1}}});
  std::string h = "h";
  int64_t in = 64;
  for (size_t stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage, out = bottleneck ? 4 * width : width;
    for (int block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const std::string shortcut = stride > 1 || in != out ? b.Convolution(h, in, out, 1, stride) : h;
      if (bottleneck) {
        h = b.Apply("Relu", {b.Convolution(h, in, width, 1)});
        h = b.Apply("Relu", {b.Convolution(h, width, width, 3, stride)});
        h = b.Convolution(h, width, out, 1);
      } else {
        h = b.Apply("Relu", {b.Convolution(h, in, width, 3, stride)});
        h = b.Convolution(h, width, out, 3);
      }
      h = b.Apply("Relu", {b.Apply("Add", {h, shortcut})});
      in = out;
    }
  }
  h = b.Apply("Flatten", {b.Apply("GlobalAveragePool", {h})});
  b.Weight("fc.weight", {in, 1000}).Weight("fc.bias", {1000});
  b.Output(b.Apply("Gemm", {h, "fc.weight", "fc.bias"}));
  return b;
}

TEST(Graph, GivesTheFiguresThatTorchvisionPublishesForItsResnets) {
  struct Published {
    std::array<int, 4> blocks;
    bool bottleneck;
    double million_parameters, giga_multiply_adds;
    int depth;
  };
  for (const Published& p :
       {Published{{2, 2, 2, 2}, false, 11.69, 1.814, 18}, Published{{3, 4, 6, 3}, false, 21.80, 3.664, 34},
        Published{{3, 4, 6, 3}, true, 25.56, 4.089, 50}, Published{{3, 4, 23, 3}, true, 44.55, 7.801, 101},
        Published{{3, 8, 36, 3}, true, 60.19, 11.514, 152}}) {
    SCOPED_TRACE(p.depth);
    const GraphFacts facts = FactsOf(Resnet(p.blocks, p.bottleneck));
    EXPECT_NEAR(static_cast<double>(*facts.parameters) / 1e6 / p.million_parameters, 1, 0.005);
    EXPECT_NEAR(static_cast<double>(*facts.multiply_adds_per_item) / 1e9 / p.giga_multiply_adds, 1, 0.005);
    EXPECT_EQ(facts.depth, p.depth);
    EXPECT_EQ(facts.inner_modules, p.blocks[0] + p.blocks[1] + p.blocks[2] + p.blocks[3]);
  }
}

TEST(Graph, CountsEveryLayerOfADenseBlockAsAModule) {
  GraphBuilder b;
  b.Input("x", {-1, 16, 8, 8});
  std::vector<std::string> features = {b.Convolution("x", 16, 16, 3)};
  for (int layer = 0; layer < 6; ++layer) {
    std::string h = features.front();
    if (layer > 0) {
      h = "cat" + std::to_string(layer);
      b.Node("Concat", features, {h}, {{"axis", int64_t{1}}});
    }
    features.push_back(b.Convolution(b.Apply("Relu", {b.Convolution(h, 16 + 4 * layer, 16, 1)}), 16, 4, 3));
  }
  b.Node("Concat", features, {"y"}, {{"axis", int64_t{1}}}).Output("y");
  EXPECT_EQ(FactsOf(b).inner_modules, 6);
}

TEST(Graph, CountsAnInceptionModuleWithInnerBranchesOnce) {
  GraphBuilder b;
  b.Input("x", {-1, 16, 8, 8});
  std::string h = b.Convolution("x", 16, 16, 3);
  for (int module = 0; module < 2; ++module) {
    const std::string split = b.Convolution(h, 16, 8, 1), at = std::to_string(module);
    b.Node("Concat", {b.Convolution(split, 8, 4, 3), b.Convolution(split, 8, 4, 3)}, {"inner" + at},
           {{"axis", int64_t{1}}});
    b.Node("Concat", {"inner" + at, b.Convolution(h, 16, 8, 1)}, {"outer" + at}, {{"axis", int64_t{1}}});
    h = b.Apply("Relu", {"outer" + at});
  }
  b.Output(h);
  EXPECT_EQ(FactsOf(b).inner_modules, 2);
}

TEST(Graph, CountsInvertedResidualsWithAndWithoutAShortcut) {
  GraphBuilder b;
  b.Input("x", {-1, 8, 16, 16});
  std::string h = "x";
  for (const int64_t stride : {1, 2, 1, 2, 1}) {
    std::string wide = b.Convolution(b.Convolution(h, 8, 48, 1), 48, 48, 3, stride, 48);
    wide = b.Convolution(wide, 48, 8, 1);
    h = stride == 1 ? b.Apply("Add", {h, wide}) : wide;
  }
  b.Output(h);
  EXPECT_EQ(FactsOf(b).inner_modules, 5);
}

TEST(Graph, CountsAttentionAndFeedForwardAsOneTransformerBlock) {
  GraphBuilder b;
  b.Input("x", {-1, 16, 32});
  std::string h = b.Dense("x", 32, 32);
  for (int block = 0; block < 4; ++block) {
    const std::string scores =
        b.Apply("Softmax", {b.Apply("MatMul", {b.Dense(h, 32, 32), b.Dense(h, 32, 16)})});
    h = b.Apply("Add", {h, b.Dense(b.Apply("MatMul", {scores, b.Dense(h, 32, 32)}), 32, 32)});
    h = b.Apply("Add", {h, b.Dense(b.Apply("Gelu", {b.Dense(h, 32, 128)}), 128, 32)});
  }
  b.Output(h);
  EXPECT_EQ(FactsOf(b).inner_modules, 4);
}

TEST(Graph, SeesNoModulesInAPlainChain) {
  GraphBuilder b;
  b.Input("x", {-1, 8, 16, 16});
  std::string h = "x";
  for (int i = 0; i < 8; ++i) h = b.Apply("Relu", {b.Convolution(h, 8, 8, 3)});
  b.Output(h);
  const GraphFacts facts = FactsOf(b);
  EXPECT_EQ(facts.depth, 8);
  EXPECT_EQ(facts.inner_modules, 0);
}

// ---- models at hand

std::string SharedModel(const std::string& name) {
  const char* set = std::getenv("WEIR_SHARED");
  const std::filesystem::path shared =
      set != nullptr ? std::filesystem::path(set)
                     : std::filesystem::path(__FILE__).parent_path() / "../../../shared";
  return (shared / "data/models" / name).string();
}

struct Expected {
  const char* file;
  int64_t parameters, depth, inner_modules;
  double million_multiply_adds, million_activations;
};

class SharedModels : public ::testing::TestWithParam<Expected> {};

// Parameters of the README of the models; depth, blocks and activations of networks.csv, where the network is
// in it.
TEST_P(SharedModels, HaveTheFiguresOfTheirNetworks) {
  const Expected& e = GetParam();
  const std::string path = SharedModel(e.file);
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not here: set WEIR_SHARED to the folder of shared data";
  const auto facts = ReadGraph(path);
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  EXPECT_EQ(facts->parameters, e.parameters);
  EXPECT_EQ(facts->depth, e.depth);
  EXPECT_EQ(facts->inner_modules, e.inner_modules);
  EXPECT_NEAR(static_cast<double>(*facts->multiply_adds_per_item) / 1e6 / e.million_multiply_adds, 1, 0.01);
  EXPECT_NEAR(static_cast<double>(*facts->activations_per_item) / 1e6 / e.million_activations, 1, 0.01);
  EXPECT_EQ(facts->file_bytes, std::filesystem::file_size(path));
}

INSTANTIATE_TEST_SUITE_P(
    Graph, SharedModels,
    ::testing::Values(Expected{"resnet50_pq.onnx", 25530472, 50, 16, 4089, 11.11},
                      Expected{"mobilenet_v2_qdq.onnx", 3489097, 53, 17, 300.8, 6.68},
                      Expected{"mobilenet_v1_025_224_fp32.onnx", 467336, 28, 13, 41.03, 1.262},
                      Expected{"mobilenet_v1_025_128_u8.onnx", 467593, 28, 13, 13.57, 0.4126},
                      Expected{"resnet8_cifar10.onnx", 77706, 8, 3, 12.50, 0.0860}));

TEST(Graph, ReadsATensorFlowLiteFileAsNoOnnxFile) {
  const std::string path = SharedModel("mobilenet_v1_0.25_128_quant.tflite");
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not here: set WEIR_SHARED to the folder of shared data";
  const auto facts = ReadGraph(path);
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(facts.error().message, HasSubstr("TensorFlow Lite"));
}

}  // namespace
}  // namespace weir::onnx
