#include "onnx/work.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/op.h"
#include "onnx/shapes.h"

namespace weir::onnx {
namespace {

enum class Kind { kNone, kConvolution, kTransposedConvolution, kGemm, kMatMul, kRecurrent, kEinsum };

struct Layer {
  Kind kind = Kind::kNone;
  size_t weight = 1;  // the input that holds the weights
};

Layer LayerOf(const pb::NodeProto& node) {
  static const std::unordered_map<std::string_view, Layer> layers = {
      {"Conv", {Kind::kConvolution, 1}},
      {"ConvInteger", {Kind::kConvolution, 1}},
      {"FusedConv", {Kind::kConvolution, 1}},
      {"QLinearConv", {Kind::kConvolution, 3}},
      {"Gemm", {Kind::kGemm, 1}},
      {"FusedGemm", {Kind::kGemm, 1}},
      {"QGemm", {Kind::kGemm, 3}},
      {"MatMul", {Kind::kMatMul, 1}},
      {"FusedMatMul", {Kind::kMatMul, 1}},
      {"MatMulInteger", {Kind::kMatMul, 1}},
      {"QLinearMatMul", {Kind::kMatMul, 3}},
      {"ConvTranspose", {Kind::kTransposedConvolution, 1}},
      {"LSTM", {Kind::kRecurrent, 1}},
      {"GRU", {Kind::kRecurrent, 1}},
      {"RNN", {Kind::kRecurrent, 1}},
      {"Einsum", {Kind::kEinsum, 1}},
  };
  const auto found = layers.find(node.op_type());
  return found == layers.end() || !IsKnownOperator(node) ? Layer{} : found->second;
}

std::optional<int64_t> Elements(const Dims& dims) { return dims ? Product(*dims) : std::nullopt; }

std::optional<int64_t> Times(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? Product({*a, *b}) : std::nullopt;
}

std::optional<int64_t> Plus(std::optional<int64_t> a, std::optional<int64_t> b) {
  int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

std::optional<int64_t> EinsumProducts(const Op& op) {
  if (op.inputs() < 2) return 0;
  const auto sizes = EinsumSizes(op);
  if (!sizes) return std::nullopt;
  std::vector<int64_t> all;
  for (const auto& [letter, size] : *sizes) all.push_back(size);
  return Times(Product(all), static_cast<int64_t>(op.inputs()) - 1);
}

std::optional<int64_t> MultiplyAdds(const Op& op, const Layer& layer) {
  const Dims data = op.InputDims(0), weight = op.InputDims(layer.weight);
  const std::optional<int64_t> outputs = Elements(op.OutputDims(0));
  switch (layer.kind) {
    case Kind::kNone:
      return 0;
    case Kind::kEinsum:
      return EinsumProducts(op);
    case Kind::kConvolution:  // each output: the input channels of its group times the window
      if (!weight || weight->empty()) return std::nullopt;
      return Times(outputs, Product({weight->begin() + 1, weight->end()}));
    case Kind::kTransposedConvolution:  // each input: the output channels of its group times the window
      if (!weight || weight->empty()) return std::nullopt;
      return Times(Elements(data), Product({weight->begin() + 1, weight->end()}));
    case Kind::kGemm:
      if (!data || data->size() != 2) return std::nullopt;
      return Times(outputs, (*data)[op.Int("transA", 0) != 0 ? 0 : 1]);
    case Kind::kMatMul:
      if (!data || data->empty()) return std::nullopt;
      return Times(outputs,
                   op.Int("transA", 0) != 0 && data->size() > 1 ? (*data)[data->size() - 2] : data->back());
    case Kind::kRecurrent: {  // every weight once per step and sequence
      if (!data || data->size() != 3) return std::nullopt;
      return Times(Product({(*data)[0], (*data)[1]}), Plus(Elements(weight), Elements(op.InputDims(2))));
    }
  }
  return std::nullopt;
}

// The operands that can hold parameters, where not all can.
const std::vector<size_t>* ParameterOperands(std::string_view type) {
  using Operands = std::unordered_map<std::string_view, std::vector<size_t>>;
  static const Operands operands = [] {
    Operands table = {{"BatchNormalization", {1, 2}}, {"QLinearConv", {3, 8}},   {"QLinearMatMul", {0, 3}},
                      {"ConvInteger", {1}},           {"MatMulInteger", {0, 1}}, {"QLinearAdd", {0, 3}},
                      {"QLinearMul", {0, 3}},         {"QGemm", {3, 6}},         {"Where", {1, 2}},
                      {"LSTM", {1, 2, 3, 7}},         {"GRU", {1, 2, 3}},        {"RNN", {1, 2, 3}}};
    for (
        const auto* name :
        {"ArgMax",    "ArgMin",         "Clip",           "CumSum",     "DequantizeLinear", "Dropout",
         "Expand",    "Gather",         "GatherElements", "GatherND",   "OneHot",           "Pad",
         "Pow",       "QuantizeLinear", "ReduceL1",       "ReduceL2",   "ReduceLogSum",     "ReduceLogSumExp",
         "ReduceMax", "ReduceMean",     "ReduceMin",      "ReduceProd", "ReduceSum",        "ReduceSumSquare",
         "Reshape",   "Resize",         "Slice",          "Split",      "Squeeze",          "Tile",
         "TopK",      "Trilu",          "Unsqueeze",      "Upsample"}) {
      table[name] = {0};
    }
    return table;
  }();
  const auto found = operands.find(type);
  return found == operands.end() ? nullptr : &found->second;
}

// Masks, indices and texts are no parameters; the 32-bit integers of a quantized layer are its bias.
bool CanBeParameter(const Value& value, std::string_view type) {
  switch (value.type) {
    case pb::TensorProto::INT32:
      return type == "QLinearConv" || type == "QGemm";
    case pb::TensorProto::INT64:
    case pb::TensorProto::UINT32:
    case pb::TensorProto::UINT64:
    case pb::TensorProto::BOOL:
    case pb::TensorProto::STRING:
      return false;
    default:
      return true;
  }
}

// Counts constants where they first meet something that is not constant.
class ParameterCount {
 public:
  explicit ParameterCount(const Net& net) : net_(net) {}

  void See(const Node& node) {
    const auto* operands = ParameterOperands(node.proto->op_type());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (operands != nullptr && std::ranges::find(*operands, i) == operands->end()) continue;
      if (node.inputs[i] >= 0) SeeOperand(net_.values[node.inputs[i]], node.proto->op_type());
    }
  }
  std::optional<int64_t> count() const { return count_; }

 private:
  void SeeOperand(const Value& value, std::string_view type) {
    if (value.origin != Origin::kConstant || !CanBeParameter(value, type)) return;
    if (!seen_.insert(value.storage).second) return;
    const std::optional<int64_t> elements = Elements(value.dims);
    // Single numbers are the constants of a formula, but where a layer takes them as weights.
    if (elements == 1 && type != "Conv" && type != "Gemm" && type != "PRelu") return;
    count_ = Plus(count_, elements);
  }

  const Net& net_;
  std::unordered_set<int> seen_;
  std::optional<int64_t> count_ = 0;
};

bool IsConstantNode(const Net& net, const Node& node) {
  return std::ranges::all_of(node.outputs,
                             [&](int id) { return id < 0 || net.values[id].origin == Origin::kConstant; });
}

}  // namespace

bool IsWeightLayer(Net& net, const Node& node) {
  const Layer layer = LayerOf(*node.proto);
  const Op op(net, node);
  switch (layer.kind) {
    case Kind::kNone:
      return false;
    case Kind::kConvolution:
    case Kind::kTransposedConvolution:
    case Kind::kRecurrent:
      return true;
    default:
      return op.IsConstant(0) || op.IsConstant(layer.weight);
  }
}

bool IsDepthwise(Net& net, const Node& node) {
  const Layer layer = LayerOf(*node.proto);
  if (layer.kind != Kind::kConvolution) return false;
  const Op op(net, node);
  const Dims data = op.InputDims(0);
  const int64_t group = op.Int("group", 1);
  return group > 1 && data && data->size() > 1 && (*data)[1] == group;
}

Work WorkOf(Net& net) {
  if (!net.complete) return {};
  Work work{.multiply_adds = 0, .activations = 0};
  ParameterCount parameters(net);
  for (const Node& node : net.nodes) {
    if (IsConstantNode(net, node)) continue;  // computed once, when the model is loaded
    parameters.See(node);
    const Op op(net, node);
    const Layer layer = LayerOf(*node.proto);
    const bool countable =
        IsKnownOperator(*node.proto) && !(layer.kind != Kind::kNone && node.in_control_flow);
    work.multiply_adds = Plus(work.multiply_adds, countable ? MultiplyAdds(op, layer) : std::nullopt);
    if (!countable) work.activations.reset();
    if (IsWeightLayer(net, node)) work.activations = Plus(work.activations, Elements(op.OutputDims(0)));
  }
  work.parameters = parameters.count();
  return work;
}

}  // namespace weir::onnx
