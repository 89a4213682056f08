// Tiny ONNX files, written by hand: one operator from the input "x" to the output "y", or more.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace weir::infer::testing {

// The protobuf wire format, as much of it as these files need.
inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}
inline std::string NumberField(int field, uint64_t value) { return Varint(field << 3) + Varint(value); }
inline std::string BytesField(int field, const std::string& bytes) {
  return Varint((field << 3) | 2) + Varint(bytes.size()) + bytes;
}

// Numbers of TensorProto.DataType.
enum class OnnxType {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
  kInt4 = 22
};

struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  std::optional<std::vector<int64_t>> shape;  // -1: free; nothing: not declared
};
struct OnnxNode {
  std::string type;
  std::vector<std::string> inputs, outputs;
  std::string attributes = {};  // fields 5 of a NodeProto, as IntAttribute writes them
};
struct OnnxConstant {
  OnnxValue value;
  std::string bytes;
};
struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxConstant> constants = {};
  uint64_t ir_version = 8;
};

inline std::string IntAttribute(const std::string& name, int64_t value) {
  return BytesField(5,
                    BytesField(1, name) + NumberField(3, static_cast<uint64_t>(value)) + NumberField(20, 2));
}

inline std::string ValueInfo(const OnnxValue& value) {
  std::string dims;
  for (size_t i = 0; value.shape && i < value.shape->size(); ++i) {
    const int64_t size = (*value.shape)[i];
    const auto dim = size < 0 ? BytesField(2, value.name + std::to_string(i)) : NumberField(1, size);
    dims += BytesField(1, dim);
  }
  const std::string tensor =
      NumberField(1, static_cast<uint64_t>(value.type)) + (value.shape ? BytesField(2, dims) : std::string());
  return BytesField(1, value.name) + BytesField(2, BytesField(1, tensor));
}

inline std::string WriteOnnx(const OnnxGraph& graph) {
  std::string body;
  for (const OnnxNode& node : graph.nodes) {
    std::string bytes;
    for (const std::string& input : node.inputs) bytes += BytesField(1, input);
    for (const std::string& output : node.outputs) bytes += BytesField(2, output);
    body += BytesField(1, bytes + BytesField(4, node.type) + node.attributes);
  }
  body += BytesField(2, "tiny");
  for (const auto& [value, data] : graph.constants) {
    std::string bytes;
    for (const int64_t size : *value.shape) bytes += NumberField(1, size);
    body += BytesField(5, bytes + NumberField(2, static_cast<uint64_t>(value.type)) +
                              BytesField(8, value.name) + BytesField(9, data));
  }
  for (const OnnxValue& input : graph.inputs) body += BytesField(11, ValueInfo(input));
  for (const OnnxValue& output : graph.outputs) body += BytesField(12, ValueInfo(output));
  return NumberField(1, graph.ir_version) + BytesField(7, body) +
         BytesField(8, NumberField(2, 13));  // opset 13
}

struct TinyOnnx {
  std::string op_type = "Identity";
  OnnxType input_type = OnnxType::kFloat;
  OnnxType output_type = OnnxType::kFloat;
  std::vector<int64_t> input_shape = {-1, 4};  // -1: free
  std::vector<int64_t> output_shape = {-1, 4};
  std::vector<std::string> outputs = {"y"};  // all of the same type and shape
  std::string first;                         // an operator before, whose output "a" then goes into this one
};

inline std::string WriteTinyOnnx(const TinyOnnx& tiny) {
  OnnxGraph graph{.nodes = {}, .inputs = {{"x", tiny.input_type, tiny.input_shape}}, .outputs = {}};
  for (const std::string& output : tiny.outputs)
    graph.outputs.push_back({output, tiny.output_type, tiny.output_shape});
  const bool chain = !tiny.first.empty();
  if (chain) graph.nodes.push_back({tiny.first, {"x"}, {"a"}});
  graph.nodes.push_back({tiny.op_type, {chain ? "a" : "x"}, tiny.outputs});
  return WriteOnnx(graph);
}

// Put the file in `folder`, which ends with a slash, and return its path.
inline std::string SaveOnnx(const std::string& folder, const std::string& name, const OnnxGraph& graph) {
  const std::string path = folder + name;
  std::ofstream(path, std::ios::binary) << WriteOnnx(graph);
  return path;
}
inline std::string SaveTinyOnnx(const std::string& folder, const std::string& name, const TinyOnnx& tiny) {
  const std::string path = folder + name;
  std::ofstream(path, std::ios::binary) << WriteTinyOnnx(tiny);
  return path;
}

}  // namespace weir::infer::testing
