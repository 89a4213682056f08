#include "serve/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "serve/top_k.h"

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

// Orders as the values do: NaN before all else, -0 like 0.
uint64_t KeyOf(double value) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if (std::isnan(value)) return 0;
  const auto bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
uint64_t KeyOf(float value) { return KeyOf(double{value}); }
uint64_t KeyOf(int64_t value) { return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63); }
uint64_t KeyOf(int32_t value) { return KeyOf(int64_t{value}); }
uint64_t KeyOf(uint64_t value) { return value; }
uint64_t KeyOf(uint32_t value) { return value; }

struct Candidate {
  uint64_t key;
  size_t index;
};

struct IsBetter {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.key != b.key ? a.key > b.key : a.index < b.index;
  }
};

// Appends the best of one row. Value is what its elements, T, are compared and shown as. False: cancelled.
template <typename T, typename Value>
bool AppendBest(std::span<const std::byte> row, size_t count, const Classification& wanted,
                std::string& out) {
  constexpr size_t kBetweenLooks = 1 << 18;
  const size_t classes = row.size() / sizeof(T);
  TopK<Candidate, IsBetter> best(count, IsBetter());
  for (size_t i = 0; i < classes; ++i) {
    if (i % kBetweenLooks == 0 && wanted.cancelled.stop_requested()) return false;
    best.Offer({KeyOf(static_cast<Value>(ElementAt<T>(row, i))), i});
  }
  for (const auto& [key, index] : best.Take()) {
    std::string text =
        fmt::format("{}:{}", std::to_string(static_cast<Value>(ElementAt<T>(row, index))), index);
    const bool labelled =
        wanted.labels != nullptr && index < wanted.labels->size() && !(*wanted.labels)[index].empty();
    if (labelled) text += ":" + (*wanted.labels)[index];
    Append(text, out);
  }
  return true;
}

using Appender = bool (*)(std::span<const std::byte>, size_t, const Classification&, std::string&);

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

Status CheckClassResults(int64_t rows, int64_t classes, int64_t count) {
  if (rows < 1 || classes < 1 || std::min(count, classes) <= kMostClassResults / rows) return {};
  const std::string most = rows > kMostClassResults
                               ? "send fewer rows"
                               : fmt::format("ask for at most {}", kMostClassResults / rows);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("classification of the best {} of {} classes in each of {} rows is more than {} "
                          "results: {}, or take the output without classification",
                          std::min(count, classes), classes, rows, kMostClassResults, most));
}

Result<infer::Tensor> Classify(const infer::Tensor& scores, const Classification& wanted) {
  const Appender append = AppenderOf(scores.dtype);
  if (append == nullptr) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("output \"{}\" is {}: only numbers can be ranked as classes", scores.name,
                            ToString(scores.dtype)));
  }
  const int64_t elements = TRY(infer::ElementCount(scores.shape));
  const int64_t rows = wanted.batched && !scores.shape.empty() ? scores.shape.front() : 1;
  const int64_t classes = rows > 0 ? elements / rows : 0;
  TRY_STATUS(CheckClassResults(rows, classes, wanted.count));
  const int64_t kept = std::min(wanted.count, classes);
  infer::Tensor answer{.name = scores.name, .dtype = DType::kBytes};
  if (wanted.batched) answer.shape.push_back(rows);
  answer.shape.push_back(kept);
  std::string text;
  const size_t row_bytes = rows > 0 ? scores.data.size() / static_cast<size_t>(rows) : 0;
  for (int64_t row = 0; row < rows && kept > 0; ++row) {
    const auto values = scores.data.span().subspan(static_cast<size_t>(row) * row_bytes, row_bytes);
    if (!append(values, static_cast<size_t>(kept), wanted, text))
      return Fail(ErrorCode::kCancelled, "the client left");
  }
  answer.data = Bytes::Copy(text);
  return answer;
}

}  // namespace weir::serve
