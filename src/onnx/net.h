// The graph as plain indices: subgraphs and model-local functions written out, names resolved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "onnx/proto.h"

namespace weir::onnx {

// The source of a value. kShape: the shapes of values, or nothing (Range, RandomNormal), but no
// data.
enum class Origin { kConstant, kShape, kData };

using Dims = std::optional<std::vector<int64_t>>;  // -1: a dimension not known; absent: not even the rank
constexpr int64_t kUnknownDim = -1;
// Larger sizes are taken as not known, so that sums of a few of them, and of attributes, never overflow.
constexpr int64_t kMaxDim = int64_t{1} << 40;
constexpr int64_t kBatchDim = -2;  // in what the file declares: the free first dimension of the inputs

struct Value {
  Origin origin = Origin::kData;
  int32_t type = 0;  // TensorProto::DataType; 0: not known
  Dims dims;
  // Elements of small one-dimensional or scalar values, so that computed shapes can be followed; NaN: not
  // known.
  std::optional<std::vector<double>> content;
  int storage =
      0;  // index of the value whose elements these are, seen through reshapes, casts and dequantization
  Dims declared;  // by the file's value_info, with kBatchDim
};

struct Node {
  const pb::NodeProto* proto = nullptr;
  int frame = -1;           // the function call it stands in; -1: none
  std::vector<int> inputs;  // indices of values; -1: left out
  std::vector<int> outputs;
  std::vector<int> captured;  // values that the node's subgraphs take from around it
  bool in_control_flow = false;
};

struct Frame {
  const pb::NodeProto* call = nullptr;
  int frame = -1;                                             // the call stands in this one
  const std::vector<pb::AttributeProto>* defaults = nullptr;  // of the function called
};

// Borrows the model. Nodes are in the file's order, which is a topological one; a value that nothing made
// before its use (a graph out of order or in a circle) is data of unknown shape, and makes the net
// incomplete.
struct Net {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Frame> frames;
  std::map<const pb::FunctionProto*, std::vector<pb::AttributeProto>> defaults;
  std::vector<int> inputs;  // of the main graph, without initializers; as in InputsOf
  std::vector<int> outputs;
  bool complete = true;  // every value and function was found

  // The node's attribute, or the one its function call gives it; null when neither has it.
  const pb::AttributeProto* Attribute(const Node& node, std::string_view name) const;
};

// Inputs of the main graph that no initializer fills.
std::vector<const pb::ValueInfoProto*> InputsOf(const pb::GraphProto& graph);

// `model` has passed CheckSafe, which bounds the size of what is written out here.
Net MakeNet(const pb::ModelProto& model);

// Elements of `tensor` as numbers, when it is small and held in the file.
std::optional<std::vector<double>> SmallContent(const pb::TensorProto& tensor);

}  // namespace weir::onnx
