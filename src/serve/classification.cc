#include "serve/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

namespace weir::serve {
namespace {

using infer::DType;

// IEEE 754 binary16.
float FromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F, mantissa = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  const float size = exponent == 0
                         ? std::ldexp(static_cast<float>(mantissa), -24)
                         : std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
  return sign != 0 ? -size : size;
}

struct Half {
  uint16_t bits;
  explicit operator float() const { return FromHalf(bits); }
};
struct Brain {
  uint16_t bits;
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <typename T>
T ElementAt(std::span<const std::byte> data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

void Append(std::string_view text, std::string& out) {
  const auto length = static_cast<uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out.append(text);
}

// Appends the best `count` of one row. Value is what its elements, T, are compared and shown as.
template <typename T, typename Value>
void AppendBest(std::span<const std::byte> row, size_t count, const std::vector<std::string>& labels,
                std::string& out) {
  std::vector<Value> values(row.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Value>(ElementAt<T>(row, i));
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto better = [&](size_t a, size_t b) {
    if constexpr (std::is_floating_point_v<Value>) {
      const bool a_none = std::isnan(values[a]), b_none = std::isnan(values[b]);
      if (a_none || b_none) return a_none == b_none ? a < b : b_none;
    }
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  const auto end = order.begin() + static_cast<ptrdiff_t>(count);
  std::partial_sort(order.begin(), end, order.end(), better);
  for (auto at = order.begin(); at != end; ++at) {
    const std::string text = fmt::format("{}:{}", std::to_string(values[*at]), *at);
    const bool labelled = *at < labels.size() && !labels[*at].empty();
    Append(labelled ? text + ":" + labels[*at] : text, out);
  }
}

using Appender = void (*)(std::span<const std::byte>, size_t, const std::vector<std::string>&, std::string&);

// Null for types that are not numbers.
Appender AppenderOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return AppendBest<uint8_t, uint32_t>;
    case DType::kUint16:
      return AppendBest<uint16_t, uint32_t>;
    case DType::kUint32:
      return AppendBest<uint32_t, uint32_t>;
    case DType::kUint64:
      return AppendBest<uint64_t, uint64_t>;
    case DType::kInt8:
      return AppendBest<int8_t, int32_t>;
    case DType::kInt16:
      return AppendBest<int16_t, int32_t>;
    case DType::kInt32:
      return AppendBest<int32_t, int32_t>;
    case DType::kInt64:
      return AppendBest<int64_t, int64_t>;
    case DType::kFp16:
      return AppendBest<Half, float>;
    case DType::kBf16:
      return AppendBest<Brain, float>;
    case DType::kFp32:
      return AppendBest<float, float>;
    case DType::kFp64:
      return AppendBest<double, double>;
    case DType::kBool:
    case DType::kBytes:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Result<infer::Tensor> Classify(const infer::Tensor& scores, bool batched, int64_t count,
                               const std::vector<std::string>& labels) {
  const Appender append = AppenderOf(scores.dtype);
  if (append == nullptr) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("output \"{}\" is {}: only numbers can be ranked as classes", scores.name,
                            ToString(scores.dtype)));
  }
  const int64_t elements = TRY(infer::ElementCount(scores.shape));
  const int64_t rows = batched && !scores.shape.empty() ? scores.shape.front() : 1;
  const int64_t classes = rows > 0 ? elements / rows : 0;
  const int64_t kept = std::min(count, classes);
  infer::Tensor answer{.name = scores.name, .dtype = DType::kBytes};
  if (batched) answer.shape.push_back(rows);
  answer.shape.push_back(kept);
  std::string text;
  const size_t row_bytes = rows > 0 ? scores.data.size() / static_cast<size_t>(rows) : 0;
  for (int64_t row = 0; row < rows; ++row) {
    append(scores.data.span().subspan(static_cast<size_t>(row) * row_bytes, row_bytes),
           static_cast<size_t>(kept), labels, text);
  }
  answer.data = Bytes::Copy(text);
  return answer;
}

}  // namespace weir::serve
