#include "wire/json_data.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "wire/buffer.h"
#include "wire/infer_rules.h"
#include "wire/text.h"

namespace weir::wire {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Why an element cannot be one of its tensor's.
enum class Flaw { kNone, kMalformed, kType, kRange };

Flaw ReadElement(json::value& value, bool& element) {
  return value.get_bool().get(element) == simdjson::SUCCESS ? Flaw::kNone : Flaw::kType;
}

// What is wrong with a number that was to be an integer.
Flaw WhyNoInteger(json::value& value) {
  const std::string_view token = Token(value);
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS) {
    return NotFinite(token) ? Flaw::kType : Flaw::kMalformed;
  }
  return token.find_first_of(".eE") == std::string_view::npos ? Flaw::kRange : Flaw::kType;
}

template <typename T>
  requires std::is_integral_v<T>
Flaw ReadElement(json::value& value, T& element) {
  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> wide{};
  simdjson::error_code error{};
  if constexpr (std::is_signed_v<T>) {
    error = value.get_int64().get(wide);
  } else {
    error = value.get_uint64().get(wide);
  }
  if (error != simdjson::SUCCESS) [[unlikely]] {
    return WhyNoInteger(value);
  }
  element = static_cast<T>(wide);
  return std::in_range<T>(wide) ? Flaw::kNone : Flaw::kRange;
}

Flaw ReadElement(json::value& value, double& element) {
  if (value.get_double().get(element) == simdjson::SUCCESS) [[likely]] {
    return Flaw::kNone;
  }
  const auto token = NotFinite(Token(value));
  element = token.value_or(0);
  return token ? Flaw::kNone : Flaw::kMalformed;
}

// The nearest float to the decimal. Rounding it to a double first gives the same, but where that double lies
// just between two floats or is too small for a normal float: there the decimal is read again.
Flaw ReadElement(json::value& value, float& element) {
  double wide = 0;
  const Flaw flaw = ReadElement(value, wide);
  element = static_cast<float>(wide);
  const uint64_t bits = std::bit_cast<uint64_t>(wide);
  const bool between = (bits & 0x1fff'ffff) == 0x1000'0000;
  const bool tiny = std::fabs(wide) < std::numeric_limits<float>::min() && wide != 0;
  if ((between || tiny) && flaw == Flaw::kNone) [[unlikely]] {
    const std::string_view token = Token(value);
    float exact = 0;
    const auto read = std::from_chars(token.data(), token.data() + token.size(), exact);
    if (read.ec == std::errc()) element = exact;
  }
  return std::isinf(element) && !std::isinf(wide) ? Flaw::kRange : flaw;
}

// Takes the elements of one tensor, in their order.
template <typename T>
class Elements {
 public:
  Elements(Bytes& data, size_t count) : next_(reinterpret_cast<T*>(data.mutable_data())), left_(count) {}
  size_t left() const { return left_; }
  Flaw Take(json::value& value) {
    T element{};
    const Flaw flaw = ReadElement(value, element);
    *next_++ = element;
    --left_;
    return flaw;
  }

 private:
  T* next_;
  size_t left_;
};

// BYTES: each with its length before it.
class Strings {
 public:
  Strings(Buffer& data, size_t count) : data_(data), left_(count) {}
  size_t left() const { return left_; }
  Flaw Take(json::value& value) {
    if (KindOf(value) != Kind::kString) return Flaw::kType;
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) return Flaw::kMalformed;
    const auto length = static_cast<uint32_t>(text.size());
    char* const to = data_.Room(sizeof length + text.size());
    std::memcpy(to, &length, sizeof length);
    if (!text.empty()) std::memcpy(to + sizeof length, text.data(), text.size());
    data_.Advance(sizeof length + text.size());
    --left_;
    return Flaw::kNone;
  }

 private:
  Buffer& data_;
  size_t left_;
};

Status FlawOf(const infer::Tensor& tensor, json::value& value, Flaw flaw) {
  const auto said = [&](std::string_view what) {
    return Bad(
        fmt::format("data holds {}, which {} {}", Quoted(Token(value)), what, infer::ToString(tensor.dtype)));
  };
  return flaw == Flaw::kRange ? said("does not fit") : said("is no value of");
}

// Nested or flat, the elements lie in row-major order; how they are nested is not held against the shape.
template <typename Sink>
Status Flatten(json::value value, const infer::Tensor& tensor, int depth, Sink& sink) {
  if (depth > kMaxJsonDepth) return Bad(fmt::format("data is nested deeper than {}", kMaxJsonDepth));
  json::array array = TRY_JSON(value.get_array());
  for (auto item : array) {
    json::value element = TRY_JSON(std::move(item));
    if (KindOf(element) == Kind::kArray) {
      TRY_STATUS(Flatten(element, tensor, depth + 1, sink));
      continue;
    }
    if (sink.left() == 0) {
      return Bad(fmt::format("data has more elements than shape {}", infer::ToString(tensor.shape)));
    }
    const Flaw flaw = sink.Take(element);
    if (flaw != Flaw::kNone) [[unlikely]] {
      return FlawOf(tensor, element, flaw);
    }
  }
  return {};
}

template <typename Sink>
Status Fill(json::value value, const infer::Tensor& tensor, Sink sink) {
  if (KindOf(value) != Kind::kArray) return Bad("'data' is not an array");
  const size_t wanted = sink.left();
  TRY_STATUS(Flatten(value, tensor, 1, sink));
  if (sink.left() == 0) return {};
  return Bad(fmt::format("data has {} elements, shape {} wants {}", wanted - sink.left(),
                         infer::ToString(tensor.shape), wanted));
}

template <typename T>
Status FillNumbers(json::value value, infer::Tensor& tensor, size_t count) {
  tensor.data = Bytes::AllocateUninitialized(count * sizeof(T));
  return Fill(value, tensor, Elements<T>(tensor.data, count));
}

Status FillStrings(json::value value, infer::Tensor& tensor, size_t count) {
  Buffer data(8 * count);
  TRY_STATUS(Fill(value, tensor, Strings(data, count)));
  tensor.data = std::move(data).Take();
  return {};
}

}  // namespace

Status ReadJsonData(json::value value, infer::Tensor& tensor, size_t json_size) {
  const int64_t elements = TRY(CountElements(tensor));
  // An element is a character and a comma or bracket at least: no memory for what cannot be there.
  if (static_cast<uint64_t>(elements) > json_size / 2) {
    return Bad(fmt::format("data has fewer elements than shape {}", infer::ToString(tensor.shape)));
  }
  const auto count = static_cast<size_t>(elements);
  switch (tensor.dtype) {
    case infer::DType::kBool:
      return FillNumbers<bool>(value, tensor, count);
    case infer::DType::kUint8:
      return FillNumbers<uint8_t>(value, tensor, count);
    case infer::DType::kUint16:
      return FillNumbers<uint16_t>(value, tensor, count);
    case infer::DType::kUint32:
      return FillNumbers<uint32_t>(value, tensor, count);
    case infer::DType::kUint64:
      return FillNumbers<uint64_t>(value, tensor, count);
    case infer::DType::kInt8:
      return FillNumbers<int8_t>(value, tensor, count);
    case infer::DType::kInt16:
      return FillNumbers<int16_t>(value, tensor, count);
    case infer::DType::kInt32:
      return FillNumbers<int32_t>(value, tensor, count);
    case infer::DType::kInt64:
      return FillNumbers<int64_t>(value, tensor, count);
    case infer::DType::kFp32:
      return FillNumbers<float>(value, tensor, count);
    case infer::DType::kFp64:
      return FillNumbers<double>(value, tensor, count);
    case infer::DType::kBytes:
      return FillStrings(value, tensor, count);
    case infer::DType::kFp16:
    case infer::DType::kBf16:
      break;
  }
  return Bad(
      fmt::format("{} has no JSON form: send it binary (binary_data_size)", infer::ToString(tensor.dtype)));
}

}  // namespace weir::wire
