#include "infer/tensor.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace weir::infer {
namespace {

struct DTypeFacts {
  std::string_view name;
  size_t bytes;
};
// In the order of DType.
constexpr std::array<DTypeFacts, 14> kFacts{{{"BOOL", 1},
                                             {"UINT8", 1},
                                             {"UINT16", 2},
                                             {"UINT32", 4},
                                             {"UINT64", 8},
                                             {"INT8", 1},
                                             {"INT16", 2},
                                             {"INT32", 4},
                                             {"INT64", 8},
                                             {"FP16", 2},
                                             {"BF16", 2},
                                             {"FP32", 4},
                                             {"FP64", 8},
                                             {"BYTES", 0}}};
static_assert(static_cast<size_t>(DType::kBytes) + 1 == kFacts.size());

}  // namespace

std::string_view ToString(DType dtype) { return kFacts[static_cast<size_t>(dtype)].name; }

Result<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<DType>(i);
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("unknown datatype '{}': use BOOL, UINT8, ..., INT64, FP16, BF16, FP32, FP64 or BYTES",
                  name));
}

size_t ByteSize(DType dtype) { return kFacts[static_cast<size_t>(dtype)].bytes; }

std::string ToString(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

Result<int64_t> ElementCount(const Shape& shape) {
  for (const int64_t dimension : shape) {
    if (dimension < 0) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("shape {} has a negative dimension", ToString(shape)));
    }
  }
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t dimension : shape) {
    if (dimension == 0) return 0;  // whatever the others are
    overflow |= count > std::numeric_limits<int64_t>::max() / dimension;
    count = overflow ? 1 : count * dimension;
  }
  if (overflow) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("shape {} has more than 2^63 elements", ToString(shape)));
  }
  return count;
}

}  // namespace weir::infer
