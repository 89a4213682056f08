// Named blocks of numbers, as the Open Inference Protocol has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace weir::infer {

enum class DType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes
};

std::string_view ToString(DType dtype);           // the protocol's names: "FP32", "UINT8", "BYTES"
Result<DType> ParseDType(std::string_view name);  // kInvalidArgument names the unknown type
size_t ByteSize(DType dtype);                     // bytes of one element; 0 for kBytes

// Sizes from the outermost dimension. In a TensorInfo -1 stands for a free dimension.
using Shape = std::vector<int64_t>;
std::string ToString(const Shape& shape);  // "[8,3,224,224]"
// The product of the dimensions; kInvalidArgument for a negative dimension or an overflow of 63 bits.
Result<int64_t> ElementCount(const Shape& shape);

// A model's declaration of one input or output.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;            // [-1] where any_rank
  bool any_rank = false;  // nobody says how many dimensions it has
  bool optional = false;  // an input that a call may leave out: the file has a value for it

  bool operator==(const TensorInfo&) const = default;
};

// A value: copying shares the data. Elements lie in row-major order; data.size() is the element count times
// ByteSize(dtype), or for kBytes each element as a 4-byte little-endian length and its bytes.
struct Tensor {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  Bytes data;
};

}  // namespace weir::infer
