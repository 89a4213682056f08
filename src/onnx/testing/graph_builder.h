// ONNX models in memory, a node at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "onnx/proto.h"

namespace weir::onnx::testing {

using AttributeValue =
    std::variant<int64_t, std::vector<int64_t>, std::string, pb::TensorProto, pb::GraphProto>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

inline pb::AttributeProto MakeAttribute(const std::string& name, const AttributeValue& value) {
  pb::AttributeProto attribute;
  attribute.set_name(name);
  struct Put {
    pb::AttributeProto& a;
    void operator()(int64_t i) { a.set_type(pb::AttributeProto::INT), a.set_i(i); }
    void operator()(const std::vector<int64_t>& v) {
      a.set_type(pb::AttributeProto::INTS);
      for (const int64_t i : v) a.add_ints(i);
    }
    void operator()(const std::string& s) { a.set_type(pb::AttributeProto::STRING), a.set_s(s); }
    void operator()(const pb::TensorProto& t) { a.set_type(pb::AttributeProto::TENSOR), *a.mutable_t() = t; }
    void operator()(const pb::GraphProto& g) { a.set_type(pb::AttributeProto::GRAPH), *a.mutable_g() = g; }
  };
  std::visit(Put{attribute}, value);
  return attribute;
}

inline pb::TensorProto Integers(const std::string& name, const std::vector<int64_t>& values) {
  pb::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(pb::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

// Names are the caller's; a weight has a shape and no content. Dimension -1: free, with the symbol "n".
class GraphBuilder {
 public:
  using Sizes = std::vector<int64_t>;

  explicit GraphBuilder(int64_t opset = 17) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
  }

  GraphBuilder& Input(const std::string& name, const Sizes& dims, int32_t type = pb::TensorProto::FLOAT) {
    Declare(*graph().add_input(), name, &dims, type);
    return *this;
  }
  GraphBuilder& Output(const std::string& name) {
    Declare(*graph().add_output(), name, nullptr, pb::TensorProto::FLOAT);
    return *this;
  }
  GraphBuilder& Output(const std::string& name, const Sizes& dims) {
    Declare(*graph().add_output(), name, &dims, pb::TensorProto::FLOAT);
    return *this;
  }
  GraphBuilder& Weight(const std::string& name, const Sizes& dims, int32_t type = pb::TensorProto::FLOAT) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    return *this;
  }
  GraphBuilder& Constant(const std::string& name, const Sizes& values) {
    *graph().add_initializer() = Integers(name, values);
    return *this;
  }
  GraphBuilder& Node(const std::string& type, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const Attributes& attributes = {}) {
    AddNode(*graph().add_node(), type, inputs, outputs, attributes);
    return *this;
  }

  // A convolution over planes with its own weight, "same" padding for odd windows; gives the output's name.
  std::string Convolution(const std::string& from, int64_t in, int64_t out, int64_t kernel,
                          int64_t stride = 1, int64_t group = 1) {
    const std::string name = "conv" + std::to_string(++made_);
    const int64_t pad = kernel / 2;
    Weight(name + ".weight", {out, in / group, kernel, kernel}).Weight(name + ".bias", {out});
    Node("Conv", {from, name + ".weight", name + ".bias"}, {name},
         {{"strides", Sizes{stride, stride}}, {"pads", Sizes{pad, pad, pad, pad}}, {"group", group}});
    return name;
  }
  std::string Dense(const std::string& from, int64_t in, int64_t out) {
    const std::string name = "dense" + std::to_string(++made_);
    Weight(name + ".weight", {in, out});
    Node("MatMul", {from, name + ".weight"}, {name});
    return name;
  }
  // An operator of one output without attributes.
  std::string Apply(const std::string& type, const std::vector<std::string>& inputs) {
    const std::string name = type + std::to_string(++made_);
    Node(type, inputs, {name});
    return name;
  }

  static void AddNode(pb::NodeProto& node, const std::string& type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const Attributes& attributes = {}) {
    node.set_op_type(type);
    for (const auto& input : inputs) node.add_input(input);
    for (const auto& output : outputs) node.add_output(output);
    for (const auto& [name, value] : attributes) *node.add_attribute() = MakeAttribute(name, value);
  }

  pb::GraphProto& graph() { return *model_.mutable_graph(); }
  pb::ModelProto& model() { return model_; }
  std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  static void Declare(pb::ValueInfoProto& info, const std::string& name, const Sizes* dims, int32_t type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    if (dims == nullptr) return;
    tensor.mutable_shape();
    for (const int64_t dim : *dims) {
      auto& d = *tensor.mutable_shape()->add_dim();
      if (dim >= 0) {
        d.set_dim_value(dim);
      } else {
        d.set_dim_param("n");
      }
    }
  }

  pb::ModelProto model_;
  int made_ = 0;
};

}  // namespace weir::onnx::testing
