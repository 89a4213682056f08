#include "onnx/shapes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/content.h"
#include "onnx/op.h"
#include "onnx/rules.h"

namespace weir::onnx {
namespace {

// ---- shapes of one or several operands

void Same(Op& op) { op.SetDims(0, op.InputDims(0)); }

void BroadcastAll(Op& op) {
  if (op.Has("broadcast")) return Same(op);  // opset 6 and before: input 1 is stretched to input 0
  Dims dims = op.InputDims(0);
  for (size_t i = 1; i < op.inputs(); ++i) dims = Broadcast(dims, op.InputDims(i));
  op.SetDims(0, dims);
}

void BroadcastQuantized(Op& op) { op.SetDims(0, Broadcast(op.InputDims(0), op.InputDims(3))); }

void Compare(Op& op) {
  BroadcastAll(op);
  op.SetType(0, pb::TensorProto::BOOL);
}

void Where(Op& op) {
  BroadcastAll(op);
  if (const Value* value = op.Input(1)) op.SetType(0, value->type);
}

// ---- type changes

void Cast(Op& op) {
  Same(op);
  op.SetType(0, static_cast<int32_t>(op.Int("to", 0)));
  op.SetSameStorage(0);
}

void CastLike(Op& op) {
  Same(op);
  if (const Value* like = op.Input(1)) op.SetType(0, like->type);
  op.SetSameStorage(0);
}

void Identity(Op& op) {
  Same(op);
  op.SetSameStorage(0);
}

void Quantize(Op& op) {
  Same(op);
  const Value* zero_point = op.Input(2);
  op.SetType(0, zero_point ? zero_point->type : pb::TensorProto::UINT8);
  op.SetSameStorage(0);
}

void Dequantize(Op& op) {
  Same(op);
  const Value* scale = op.Input(1);
  op.SetType(0, scale && scale->type != 0 ? scale->type : pb::TensorProto::FLOAT);
  op.SetSameStorage(0);
}

void DynamicQuantize(Op& op) {
  Same(op);
  op.SetType(0, pb::TensorProto::UINT8);
  for (const size_t i : {1, 2}) op.SetDims(i, Sizes{});
  op.SetType(1, pb::TensorProto::FLOAT);
  op.SetType(2, pb::TensorProto::UINT8);
}

// ---- values out of nothing

void Constant(Op& op) {
  if (const pb::TensorProto* tensor = op.Tensor("value")) {
    op.SetDims(0, Sizes(tensor->dims().begin(), tensor->dims().end()));
    op.SetType(0, tensor->data_type());
    op.SetContent(0, SmallContent(*tensor));
  } else if (op.Has("value_int")) {
    op.SetDims(0, Sizes{});
    op.SetType(0, pb::TensorProto::INT64);
    op.SetContent(0, std::vector{static_cast<double>(op.Int("value_int", 0))});
  } else if (const auto ints = op.Ints("value_ints")) {
    op.SetDims(0, Sizes{std::ssize(*ints)});
    op.SetType(0, pb::TensorProto::INT64);
    op.SetContent(0, std::vector<double>(ints->begin(), ints->end()));
  } else if (const auto floats = op.Floats("value_floats")) {
    op.SetDims(0, Sizes{std::ssize(*floats)});
    op.SetType(0, pb::TensorProto::FLOAT);
    op.SetContent(0, floats);
  } else if (op.Has("value_float")) {
    op.SetDims(0, Sizes{});
    op.SetType(0, pb::TensorProto::FLOAT);
  }
}

void ConstantOfShape(Op& op) {
  const Content shape = op.InputContent(0);
  const pb::TensorProto* fill = op.Tensor("value");
  op.SetType(0, fill ? fill->data_type() : pb::TensorProto::FLOAT);
  if (!shape || shape->size() > kMaxRank) return;
  Sizes dims;
  for (const double number : *shape) dims.push_back(ToInteger(number).value_or(kUnknownDim));
  op.SetDims(0, dims);
  const Content number = fill ? SmallContent(*fill) : std::vector{0.0};
  constexpr int64_t kFew = 1024;
  if (dims.size() == 1 && Known(dims[0]) && dims[0] <= kFew && number && number->size() == 1) {
    op.SetContent(0, std::vector<double>(static_cast<size_t>(dims[0]), number->front()));
  }
}

void Range(Op& op) {
  const Content start = op.InputContent(0), limit = op.InputContent(1), delta = op.InputContent(2);
  op.SetDims(0, Sizes{kUnknownDim});
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) return;
  const double count = std::ceil((limit->front() - start->front()) / delta->front());
  if (!std::isfinite(count)) return;
  op.SetDims(0, Sizes{ToInteger(std::max(count, 0.0)).value_or(kUnknownDim)});
}

// ---- as many as the data decide

void NonMaxSuppression(Op& op) {
  op.SetDims(0, Sizes{kUnknownDim, 3});
  op.SetType(0, pb::TensorProto::INT64);
}

void NonZero(Op& op) {
  const Dims data = op.InputDims(0);
  op.SetType(0, pb::TensorProto::INT64);
  if (data && !data->empty()) op.SetDims(0, Sizes{std::ssize(*data), kUnknownDim});
}

// Some of the parts along an axis; without one, of all elements.
void SomeOf(Op& op) {
  if (!op.Has("axis")) return op.SetDims(0, Sizes{kUnknownDim});
  Dims data = op.InputDims(0);
  const auto axis = data ? Axis(op.Int("axis", 0), data->size()) : std::nullopt;
  if (!axis) return;
  (*data)[*axis] = kUnknownDim;
  op.SetDims(0, data);
}

void Unique(Op& op) {
  for (const size_t i : {1, 2, 3}) {
    if (i >= op.outputs()) break;
    op.SetDims(i, Sizes{kUnknownDim});
    op.SetType(i, pb::TensorProto::INT64);
  }
  SomeOf(op);
}

// No products inside, and a shape that depends on the data or is not followed here.
void Opaque(Op&) {}

const RuleTable& Rules() {
  static const RuleTable* const rules = [] {
    auto* table = new RuleTable;
    AddWindowRules(*table);
    AddMatrixRules(*table);
    AddReshapeRules(*table);
    AddResizeRules(*table);
    table->Add(Same, {"Abs",
                      "Acos",
                      "Acosh",
                      "Asin",
                      "Asinh",
                      "Atan",
                      "Atanh",
                      "BatchNormalization",
                      "Bernoulli",
                      "BiasGelu",
                      "BitwiseNot",
                      "Ceil",
                      "Celu",
                      "Clip",
                      "Cos",
                      "Cosh",
                      "CumSum",
                      "Dropout",
                      "Elu",
                      "Erf",
                      "Exp",
                      "FastGelu",
                      "Floor",
                      "Gelu",
                      "GroupNormalization",
                      "HardSigmoid",
                      "HardSwish",
                      "Hardmax",
                      "InstanceNormalization",
                      "IsInf",
                      "IsNaN",
                      "LRN",
                      "LayerNormalization",
                      "LeakyRelu",
                      "Log",
                      "LogSoftmax",
                      "LpNormalization",
                      "MeanVarianceNormalization",
                      "Mish",
                      "Neg",
                      "Not",
                      "PRelu",
                      "QLinearLeakyRelu",
                      "QLinearSigmoid",
                      "QLinearSoftmax",
                      "QuickGelu",
                      "RMSNormalization",
                      "RandomNormalLike",
                      "RandomUniformLike",
                      "Reciprocal",
                      "Relu",
                      "ReverseSequence",
                      "Round",
                      "Scatter",
                      "ScatterElements",
                      "ScatterND",
                      "Selu",
                      "Shrink",
                      "Sigmoid",
                      "Sign",
                      "SimplifiedLayerNormalization",
                      "Sin",
                      "Sinh",
                      "SkipLayerNormalization",
                      "Softmax",
                      "Softplus",
                      "Softsign",
                      "Sqrt",
                      "Swish",
                      "Tan",
                      "Tanh",
                      "ThresholdedRelu",
                      "Trilu"});
    table->Add(BroadcastAll, {"Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max",
                              "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"});
    table->Add(Compare, {"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor"});
    table->Add(BroadcastQuantized, {"QLinearAdd", "QLinearMul"});
    table->Add(Where, {"Where"});
    table->Add(Identity, {"Identity"});
    table->Add(Cast, {"Cast"});
    table->Add(CastLike, {"CastLike"});
    table->Add(Quantize, {"QuantizeLinear"});
    table->Add(Dequantize, {"DequantizeLinear"});
    table->Add(DynamicQuantize, {"DynamicQuantizeLinear"});
    table->Add(Constant, {"Constant"});
    table->Add(ConstantOfShape, {"ConstantOfShape"});
    table->Add(Range, {"Range"});
    table->Add(Opaque, {"CenterCropPad",
                        "ConcatFromSequence",
                        "EyeLike",
                        "GridSample",
                        "If",
                        "Loop",
                        "MaxRoiPool",
                        "MaxUnpool",
                        "Multinomial",
                        "OneHot",
                        "Optional",
                        "OptionalGetElement",
                        "OptionalHasElement",
                        "RandomNormal",
                        "RandomUniform",
                        "RoiAlign",
                        "Scan",
                        "SequenceAt",
                        "SequenceConstruct",
                        "SequenceEmpty",
                        "SequenceErase",
                        "SequenceInsert",
                        "SequenceLength",
                        "SequenceMap",
                        "SplitToSequence",
                        "StringNormalizer"});
    table->Add(NonMaxSuppression, {"NonMaxSuppression"});
    table->Add(NonZero, {"NonZero"});
    table->Add(Unique, {"Unique"});
    table->Add(SomeOf, {"Compress"});
    return table;
  }();
  return *rules;
}

Rule RuleOf(const pb::NodeProto& node) {
  const bool standard =
      node.domain().empty() || node.domain() == "ai.onnx" || node.domain() == "com.microsoft";
  return standard ? Rules().Find(node.op_type()) : nullptr;
}

Origin OriginOf(const Op& op, const Net& net) {
  const Node& node = op.node();
  bool any = false, data = false, shape = false;
  const auto see = [&](int id) {
    if (id < 0) return;
    any = true;
    data = data || net.values[id].origin == Origin::kData;
    shape = shape || net.values[id].origin == Origin::kShape;
  };
  std::ranges::for_each(node.inputs, see);
  std::ranges::for_each(node.captured, see);
  if (op.type() == "Shape" || op.type() == "Size") return data || shape ? Origin::kShape : Origin::kConstant;
  if (data) return Origin::kData;
  const bool generated = !any && op.type() != "Constant";
  return shape || generated ? Origin::kShape : Origin::kConstant;
}

// A subgraph's outputs are data whatever goes in: its own nodes say what is constant in it.
bool HasSubgraph(const Node& node) {
  return std::ranges::any_of(node.proto->attribute(),
                             [](const auto& a) { return a.has_g() || a.graphs_size() > 0; });
}

void BelieveDeclared(Value& value, int64_t batch) {
  if (!value.declared || (value.dims && value.dims->size() != value.declared->size())) return;
  if (!value.dims) value.dims = Sizes(value.declared->size(), kUnknownDim);
  for (size_t i = 0; i < value.dims->size(); ++i) {
    const int64_t declared = (*value.declared)[i] == kBatchDim ? batch : (*value.declared)[i];
    if ((*value.dims)[i] == kUnknownDim && declared <= kMaxDim) (*value.dims)[i] = declared;
  }
}

}  // namespace

bool IsKnownOperator(const pb::NodeProto& node) { return RuleOf(node) != nullptr; }

void PropagateShapes(Net& net, int64_t batch) {
  for (const int input : net.inputs) BelieveDeclared(net.values[input], batch);
  for (const Node& node : net.nodes) {
    Op op(net, node);
    const Origin origin = HasSubgraph(node) ? Origin::kData : OriginOf(op, net);
    const Value* first = op.Input(0);
    for (const int output : node.outputs) {
      if (output < 0) continue;
      net.values[output].origin = origin;
      if (first != nullptr) net.values[output].type = first->type;
    }
    if (const Rule rule = RuleOf(*node.proto)) {
      rule(op);
      FollowContent(op);
    }
    for (const int output : node.outputs) {
      if (output >= 0) BelieveDeclared(net.values[output], batch);
    }
  }
}

}  // namespace weir::onnx
