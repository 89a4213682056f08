#include "onnx/reduced.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "infer/half.h"
#include "onnx/load.h"
#include "onnx/proto.h"

namespace weir::onnx {
namespace {

constexpr std::array kControlFlow = {"If", "Loop", "Scan", "SequenceMap"};
constexpr std::array kQuantised = {"QuantizeLinear", "DequantizeLinear",      "QLinearConv",
                                   "QLinearMatMul",  "DynamicQuantizeLinear", "ConvInteger",
                                   "MatMulInteger"};

// Whether the operator wants FP32 at this input, whatever the others are.
bool WantsFloat(const std::string& op_type, int input) {
  if (op_type == "Resize") return input == 1 || input == 2;
  return op_type == "Upsample" && input == 1;
}

class Reduction {
 public:
  Reduction(pb::ModelProto& model, ReducedFloat type)
      : graph_(*model.mutable_graph()),
        type_(type),
        number_(type == ReducedFloat::kFp16 ? pb::TensorProto::FLOAT16 : pb::TensorProto::BFLOAT16) {}

  Status Apply() {
    TRY_STATUS(CheckNodes());
    FindUses();
    TRY_STATUS(ConvertConstants());
    for (pb::NodeProto& node : *graph_.mutable_node()) TRY_STATUS(ConvertNode(node));
    ConvertInputs();
    ConvertOutputs();
    graph_.clear_value_info();  // of the other type; the engine works it out again
    PutNodes();
    return {};
  }

 private:
  Status CheckNodes() const {
    for (const pb::NodeProto& node : graph_.node()) {
      const auto is = [&](const auto& names) {
        return std::ranges::find(names, node.op_type()) != names.end();
      };
      if (is(kControlFlow))
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("it has control flow ({}), whose graphs are not converted: use f32 or tf32",
                                node.op_type()));
      if (is(kQuantised))
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("it is quantised ({}): take the model in FP32, or use f32", node.op_type()));
    }
    return {};
  }

  // Which values are FP32 parameters that must stay so.
  void FindUses() {
    for (const pb::NodeProto& node : graph_.node()) {
      for (int i = 0; i < node.input_size(); ++i) {
        if (WantsFloat(node.op_type(), i)) kept_.insert(node.input(i));
      }
    }
  }

  Status ConvertTensor(pb::TensorProto& tensor) const {
    if (tensor.data_type() != pb::TensorProto::FLOAT) return {};
    if (tensor.data_location() == pb::TensorProto::EXTERNAL)
      return Fail(ErrorCode::kUnsupported,
                  "its weights lie in files of their own: save the model as one file (onnx.save_model)");
    std::vector<float> values(tensor.float_data().begin(), tensor.float_data().end());
    if (tensor.has_raw_data()) {
      values.resize(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(float));
    }
    std::string bytes(values.size() * sizeof(uint16_t), '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t bits = Round(values[i]);
      std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
    }
    tensor.clear_float_data();
    tensor.set_raw_data(std::move(bytes));
    tensor.set_data_type(number_);
    return {};
  }

  uint16_t Round(float value) const {
    constexpr float kGreatest = 65504;
    if (type_ == ReducedFloat::kBf16) return infer::Bf16(static_cast<double>(value)).bits;
    if (std::isfinite(value)) value = std::clamp(value, -kGreatest, kGreatest);
    return infer::Fp16(static_cast<double>(value)).bits;
  }

  // A value that is used as both has a second name for its FP32 form.
  std::string KeptName(const std::string& name) const { return name + "_weir_f32"; }

  Status ConvertConstants() {
    std::vector<pb::TensorProto> copies;
    for (pb::TensorProto& tensor : *graph_.mutable_initializer()) {
      constants_.insert(tensor.name());
      if (kept_.contains(tensor.name()) && tensor.data_type() == pb::TensorProto::FLOAT) {
        copies.push_back(tensor);
        copies.back().set_name(KeptName(tensor.name()));
        has_float_form_.insert(tensor.name());
      }
      TRY_STATUS(ConvertTensor(tensor));
    }
    for (pb::TensorProto& copy : copies) *graph_.add_initializer() = std::move(copy);
    return {};
  }

  Status ConvertNode(pb::NodeProto& node) {
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string& name = node.input(i);
      if (name.empty() || !WantsFloat(node.op_type(), i)) continue;
      if (has_float_form_.insert(name).second)
        before_.push_back(Cast(name, KeptName(name), pb::TensorProto::FLOAT));
      node.set_input(i, KeptName(name));
    }
    for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) TRY_STATUS(ConvertTensor(*attribute.mutable_t()));
      const bool names_type = attribute.name() == "to" || attribute.name() == "dtype";
      if (names_type && attribute.i() == pb::TensorProto::FLOAT) attribute.set_i(number_);
      // A constant's value may also be an attribute of plain floats.
      if (node.op_type() == "Constant" &&
          (attribute.name() == "value_float" || attribute.name() == "value_floats"))
        TRY_STATUS(MakeTensor(attribute));
    }
    return {};
  }

  Status MakeTensor(pb::AttributeProto& attribute) const {
    pb::TensorProto tensor;
    tensor.set_data_type(pb::TensorProto::FLOAT);
    if (attribute.name() == "value_float") {
      tensor.add_float_data(attribute.f());
    } else {
      tensor.add_dims(attribute.floats_size());
      for (const float value : attribute.floats()) tensor.add_float_data(value);
    }
    TRY_STATUS(ConvertTensor(tensor));
    attribute.Clear();
    attribute.set_name("value");
    attribute.set_type(pb::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(tensor);
    return {};
  }

  static pb::NodeProto Cast(const std::string& from, const std::string& to, int number) {
    pb::NodeProto node;
    node.set_op_type("Cast");
    node.set_name("weir_cast_" + to);
    node.add_input(from);
    node.add_output(to);
    pb::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("to");
    attribute.set_type(pb::AttributeProto::INT);
    attribute.set_i(number);
    return node;
  }

  static bool IsFloat(const pb::ValueInfoProto& value) {
    return value.type().has_tensor_type() && value.type().tensor_type().elem_type() == pb::TensorProto::FLOAT;
  }

  void ConvertInputs() {
    for (pb::ValueInfoProto& input : *graph_.mutable_input()) {
      if (!IsFloat(input)) continue;
      if (constants_.contains(input.name())) {  // an initializer that older files list as an input too
        input.mutable_type()->mutable_tensor_type()->set_elem_type(number_);
        continue;
      }
      const std::string inside = input.name() + "_weir_reduced";
      Rename(input.name(), inside);
      before_.insert(before_.begin(), Cast(input.name(), inside, number_));
    }
  }

  void Rename(const std::string& from, const std::string& to) {
    const auto rename = [&](pb::NodeProto& node) {
      for (std::string& name : *node.mutable_input()) {
        if (name == from) name = to;
      }
    };
    for (pb::NodeProto& node : *graph_.mutable_node()) rename(node);
    for (pb::NodeProto& node : before_) rename(node);
  }

  void ConvertOutputs() {
    for (const pb::ValueInfoProto& output : graph_.output()) {
      if (!IsFloat(output)) continue;
      const std::string inside = output.name() + "_weir_reduced_out";
      for (pb::NodeProto& node : *graph_.mutable_node()) {
        for (std::string& name : *node.mutable_output()) {
          if (name == output.name()) name = inside;
        }
      }
      Rename(output.name(), inside);
      after_.push_back(Cast(inside, output.name(), pb::TensorProto::FLOAT));
    }
  }

  // Nodes stand after those whose values they take: a conversion stands right behind the value's maker.
  void PutNodes() {
    std::multimap<std::string, pb::NodeProto> waiting;
    std::vector<pb::NodeProto> nodes;
    std::set<std::string> made;
    for (const pb::NodeProto& node : graph_.node()) made.insert(node.output().begin(), node.output().end());
    for (pb::NodeProto& cast : before_) {
      if (made.contains(cast.input(0)))
        waiting.emplace(cast.input(0), std::move(cast));
      else
        nodes.push_back(std::move(cast));
    }
    for (pb::NodeProto& node : *graph_.mutable_node()) {
      nodes.push_back(std::move(node));
      const std::vector<std::string> outputs(nodes.back().output().begin(), nodes.back().output().end());
      for (const std::string& output : outputs) {
        const auto [begin, end] = waiting.equal_range(output);
        for (auto each = begin; each != end; ++each) nodes.push_back(std::move(each->second));
      }
    }
    for (pb::NodeProto& cast : after_) nodes.push_back(std::move(cast));
    graph_.clear_node();
    for (pb::NodeProto& node : nodes) *graph_.add_node() = std::move(node);
  }

  pb::GraphProto& graph_;
  const ReducedFloat type_;
  const pb::TensorProto::DataType number_;
  std::set<std::string> kept_, constants_, has_float_form_;
  std::vector<pb::NodeProto> before_, after_;
};

}  // namespace

Result<std::string> ReducePrecision(const std::string& path, ReducedFloat type) {
  LoadedModel loaded = TRY(LoadModel(path));
  if (const Status applied = Reduction(loaded.model, type).Apply(); !applied)
    return Context(path, applied.error());
  std::string bytes;
  if (!loaded.model.SerializeToString(&bytes))
    return Fail(ErrorCode::kUnsupported, path + ": larger than 2 GiB, which no ONNX file is in one piece");
  return bytes;
}

}  // namespace weir::onnx
