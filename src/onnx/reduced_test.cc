#include "onnx/reduced.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "infer/half.h"
#include "onnx/load.h"
#include "onnx/proto.h"

namespace weir::onnx {
namespace {

using ::testing::HasSubstr;

pb::NodeProto& AddNode(pb::GraphProto& graph, const std::string& op_type,
                       const std::vector<std::string>& inputs, const std::string& output) {
  pb::NodeProto& node = *graph.add_node();
  node.set_op_type(op_type);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void AddFloats(pb::GraphProto& graph, const std::string& name, const std::vector<float>& values) {
  pb::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(pb::TensorProto::FLOAT);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const float value : values) tensor.add_float_data(value);
}

void AddValue(pb::ValueInfoProto& value, const std::string& name) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(pb::TensorProto::FLOAT);
  for (const int64_t dim : {1, 1, 2, 2}) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

// x -> Mul weight -> Resize by scales -> Cast to FLOAT -> y
pb::ModelProto Model() {
  pb::ModelProto model;
  model.set_ir_version(8);
  auto& opset = *model.add_opset_import();
  opset.set_version(13);
  pb::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  AddValue(*graph.add_input(), "x");
  AddValue(*graph.add_output(), "y");
  AddFloats(graph, "weight", {0.1F, 1e6F});
  AddFloats(graph, "scales", {1, 1, 2, 2});
  AddNode(graph, "Mul", {"x", "weight"}, "m");
  AddNode(graph, "Resize", {"m", "", "scales"}, "r");
  pb::AttributeProto& to = *AddNode(graph, "Cast", {"r"}, "y").add_attribute();
  to.set_name("to");
  to.set_type(pb::AttributeProto::INT);
  to.set_i(pb::TensorProto::FLOAT);
  return model;
}

std::string Save(const pb::ModelProto& model) {
  const std::string path = ::testing::TempDir() + "weir_reduced.onnx";
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  return path;
}

const pb::TensorProto* Initializer(const pb::ModelProto& model, const std::string& name) {
  for (const pb::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

TEST(ReducePrecision, ComputesInsideAndKeepsTheEdges) {
  const auto bytes = ReducePrecision(Save(Model()), ReducedFloat::kFp16);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto model = ParseModel(*bytes);
  ASSERT_TRUE(model);
  const pb::GraphProto& graph = model->graph();
  EXPECT_EQ(graph.input(0).type().tensor_type().elem_type(), pb::TensorProto::FLOAT);
  EXPECT_EQ(graph.output(0).type().tensor_type().elem_type(), pb::TensorProto::FLOAT);
  std::vector<std::string> operations;
  for (const pb::NodeProto& node : graph.node()) operations.push_back(node.op_type());
  EXPECT_THAT(operations, ::testing::ElementsAre("Cast", "Mul", "Resize", "Cast", "Cast"));
  EXPECT_EQ(graph.node(0).input(0), "x");
  EXPECT_EQ(graph.node(1).input(0), graph.node(0).output(0));
  EXPECT_EQ(graph.node(4).output(0), "y");
  EXPECT_EQ(graph.node(3).attribute(0).i(), pb::TensorProto::FLOAT16)
      << "a cast to FP32 is one to the new type";
  EXPECT_EQ(graph.node(4).attribute(0).i(), pb::TensorProto::FLOAT);
}

TEST(ReducePrecision, RoundsWeightsAndKeepsParametersThatMustBeFp32) {
  const auto model = ParseModel(*ReducePrecision(Save(Model()), ReducedFloat::kFp16));
  const pb::TensorProto* weight = Initializer(*model, "weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->data_type(), pb::TensorProto::FLOAT16);
  infer::Fp16 halves[2];
  ASSERT_EQ(weight->raw_data().size(), sizeof halves);
  std::memcpy(halves, weight->raw_data().data(), sizeof halves);
  EXPECT_NEAR(static_cast<float>(halves[0]), 0.1, 1e-4);
  EXPECT_EQ(static_cast<float>(halves[1]), 65504) << "not infinity";
  const std::string scales = model->graph().node(2).input(2);
  ASSERT_NE(Initializer(*model, scales), nullptr);
  EXPECT_EQ(Initializer(*model, scales)->data_type(), pb::TensorProto::FLOAT);
}

TEST(ReducePrecision, RefusesModelsThatItWouldNotConvertWhole) {
  pb::ModelProto quantised = Model();
  AddNode(*quantised.mutable_graph(), "QuantizeLinear", {"x", "weight"}, "q");
  const auto refused = ReducePrecision(Save(quantised), ReducedFloat::kBf16);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("quantised"));
  pb::ModelProto branches = Model();
  AddNode(*branches.mutable_graph(), "If", {"x"}, "i");
  EXPECT_THAT(ReducePrecision(Save(branches), ReducedFloat::kBf16).error().message,
              HasSubstr("control flow"));
}

}  // namespace
}  // namespace weir::onnx
