// Tiny ONNX files, written by hand: one operator from the input "x" to the output "y", or more.
#pragma once

#include <cstdint>
#include <fstream>
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
enum class OnnxType { kFloat = 1, kUint8 = 2, kInt64 = 7, kString = 8 };

struct TinyOnnx {
  std::string op_type = "Identity";
  OnnxType input_type = OnnxType::kFloat;
  OnnxType output_type = OnnxType::kFloat;
  std::vector<int64_t> input_shape = {-1, 4};  // -1: free
  std::vector<int64_t> output_shape = {-1, 4};
  std::vector<std::string> outputs = {"y"};  // all of the same type and shape
  std::string first;                         // an operator before, whose output "a" then goes into this one
};

inline std::string ValueInfo(const std::string& name, OnnxType type, const std::vector<int64_t>& shape) {
  std::string dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto dim = shape[i] < 0 ? BytesField(2, name + std::to_string(i)) : NumberField(1, shape[i]);
    dims += BytesField(1, dim);
  }
  const std::string tensor = NumberField(1, static_cast<uint64_t>(type)) + BytesField(2, dims);
  return BytesField(1, name) + BytesField(2, BytesField(1, tensor));
}

inline std::string WriteTinyOnnx(const TinyOnnx& tiny) {
  std::string names, infos;
  for (const std::string& output : tiny.outputs) {
    names += BytesField(2, output);
    infos += BytesField(12, ValueInfo(output, tiny.output_type, tiny.output_shape));
  }
  const bool chain = !tiny.first.empty();
  const std::string before = BytesField(1, "x") + BytesField(2, "a") + BytesField(4, tiny.first);
  const std::string node = BytesField(1, chain ? "a" : "x") + names + BytesField(4, tiny.op_type);
  const std::string graph = (chain ? BytesField(1, before) : "") + BytesField(1, node) +
                            BytesField(2, "tiny") +
                            BytesField(11, ValueInfo("x", tiny.input_type, tiny.input_shape)) + infos;
  return NumberField(1, 8) + BytesField(7, graph) + BytesField(8, NumberField(2, 13));  // IR 8, opset 13
}

// Puts the file in `folder`, which ends with a slash, and returns its path.
inline std::string SaveTinyOnnx(const std::string& folder, const std::string& name, const TinyOnnx& tiny) {
  const std::string path = folder + name;
  std::ofstream(path, std::ios::binary) << WriteTinyOnnx(tiny);
  return path;
}

}  // namespace weir::infer::testing
