#include "infer/engines/quantised.h"

#include <string.h>

#include <algorithm>

#include "base/file.h"

namespace weir::infer {
namespace {

// Each quantised model has one of these, if only at its edge.
constexpr std::string_view kOperators[] = {"DequantizeLinear", "QLinearConv", "ConvInteger", "MatMulInteger"};

bool Contains(std::string_view onnx, std::string_view op_type) {
  const std::string field = std::string{'\x22', static_cast<char>(op_type.size())}.append(op_type);
  return memmem(onnx.data(), onnx.size(), field.data(), field.size()) != nullptr;
}

}  // namespace

bool HasQuantisedOperators(std::string_view onnx) {
  return std::ranges::any_of(kOperators, [&](std::string_view op_type) { return Contains(onnx, op_type); });
}

Result<std::string> PrecisionInForce(const std::string& path, const std::string& arithmetic) {
  const Bytes onnx = TRY(ReadFile(path, uint64_t{2} << 30));
  return HasQuantisedOperators(onnx.text()) ? arithmetic + " (quantised model: int8 where the engine can)"
                                            : arithmetic;
}

}  // namespace weir::infer
