#include "oip/http/json_data.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "infer/half.h"
#include "oip/buffer.h"
#include "oip/http/json_number.h"
#include "oip/infer_rules.h"

namespace weir::oip {
namespace {

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Why an element cannot be one of its tensor's.
enum class Flaw { kNone, kType, kRange };

// Where an element is read: `end` becomes the character behind it.
struct Place {
  const char* begin;
  const char* end;
};

Flaw ReadElement(Place& place, bool& element) {
  const std::string_view text(place.begin, 5);
  element = text.starts_with("true");
  if (!element && text != "false") return Flaw::kType;
  place.end = place.begin + (element ? 4 : 5);
  return Flaw::kNone;
}

template <typename T>
  requires std::is_integral_v<T>
Flaw ReadElement(Place& place, T& element) {
  const char* digits = place.begin;
  if (*digits == '-') ++digits;
  const char* end = digits;
  while (*end >= '0' && *end <= '9') ++end;
  const bool is_integer =
      end > digits && (*digits != '0' || end == digits + 1) && *end != '.' && *end != 'e' && *end != 'E';
  if (!is_integer) return Flaw::kType;
  place.end = end;
  return std::from_chars(place.begin, end, element).ec == std::errc() ? Flaw::kNone : Flaw::kRange;
}

template <typename T>
  requires std::is_floating_point_v<T>
Flaw ReadElement(Place& place, T& element) {
  if (const char* end = ReadJsonNumber(place.begin, element)) [[likely]] {
    place.end = end;
    return std::isinf(element) ? Flaw::kRange : Flaw::kNone;
  }
  const std::string_view text(place.begin, kNumberPadding);
  const std::string_view token = text.substr(0, text.find_first_of(",] \t\r\n"));
  const auto number = NotFinite(token);
  if (!number) return Flaw::kType;
  element = static_cast<T>(*number);
  place.end = place.begin + token.size();
  return Flaw::kNone;
}

// The nearest double is rounded once more, which is the nearest 16-bit float but for a few ties.
template <typename T>
  requires std::is_same_v<T, infer::Fp16> || std::is_same_v<T, infer::Bf16>
Flaw ReadElement(Place& place, T& element) {
  double number = 0;
  if (const Flaw flaw = ReadElement(place, number); flaw != Flaw::kNone) return flaw;
  element = T(number);
  return std::isinf(static_cast<float>(element)) && !std::isinf(number) ? Flaw::kRange : Flaw::kNone;
}

std::unexpected<Error> FlawOf(const infer::Tensor& tensor, std::string_view element, Flaw flaw) {
  return Bad(fmt::format("data holds {}, which {} {}", Quoted(element),
                         flaw == Flaw::kRange ? "does not fit" : "is no value of",
                         infer::ToString(tensor.dtype)));
}
std::unexpected<Error> TooMany(const infer::Tensor& tensor) {
  return Bad(fmt::format("data has more elements than shape {}", infer::ToString(tensor.shape)));
}
std::unexpected<Error> TooFew(const infer::Tensor& tensor, size_t found, size_t wanted) {
  return Bad(
      fmt::format("data has {} elements, shape {} wants {}", found, infer::ToString(tensor.shape), wanted));
}
std::unexpected<Error> TooDeep() { return Bad(fmt::format("data is nested deeper than {}", kMaxJsonDepth)); }

// The text of a JSON array from its bracket on. Numbers are read straight from the text: going through
// simdjson's values costs as much again as the numbers themselves. kNumberPadding spaces lie behind its end.
class ArrayText {
 public:
  explicit ArrayText(std::string_view text) : at_(text.begin()), end_(text.end()) {}

  // Reads the elements, however nested, into consecutive ones of `tensor.data`.
  template <typename T>
  Status Read(infer::Tensor& tensor, size_t count) {
    auto* const elements = reinterpret_cast<T*>(tensor.data.mutable_data());
    size_t found = 0;
    int depth = 0;
    do {
      // Here a value begins.
      if (*at_ == '[') {
        if (++depth > kMaxJsonDepth) return TooDeep();
        Next();
        if (*at_ != ']') continue;
      } else {
        Place place{at_, at_};
        T element{};
        const Flaw flaw = ReadElement(place, element);
        if (flaw != Flaw::kNone) [[unlikely]] {
          return FlawOf(tensor, Element(), flaw);
        }
        if (found == count) return TooMany(tensor);
        elements[found++] = element;
        at_ = place.end;
        SkipSpace();
      }
      // Here one has ended.
      while (*at_ == ']') {
        if (--depth == 0) return found == count ? Status() : TooFew(tensor, found, count);
        Next();
      }
      if (*at_ != ',') return Bad("malformed JSON: 'data' lacks a comma or a bracket");
      Next();
    } while (true);
  }

 private:
  void SkipSpace() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  void Next() {
    ++at_;
    SkipSpace();
  }
  // The text of the element, for a message.
  std::string_view Element() const {
    const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
    return rest.substr(0, rest.find_first_of(",] \t\r\n"));
  }

  const char* at_;
  const char* const end_;
};

// The strings of an array, each with its length before it.
Status ReadStrings(json::value value, const infer::Tensor& tensor, int depth, size_t& left, Buffer& data) {
  if (depth > kMaxJsonDepth) return TooDeep();
  json::array array = TRY_JSON(value.get_array());
  for (auto item : array) {
    json::value element = TRY_JSON(item);
    if (KindOf(element) == Kind::kArray) {
      TRY_STATUS(ReadStrings(element, tensor, depth + 1, left, data));
      continue;
    }
    if (KindOf(element) != Kind::kString) return FlawOf(tensor, Token(element), Flaw::kType);
    if (left-- == 0) return TooMany(tensor);
    const std::string_view text = TRY_JSON(element.get_string());
    const auto length = static_cast<uint32_t>(text.size());
    char* const to = data.Room(sizeof length + text.size());
    std::memcpy(to, &length, sizeof length);
    if (!text.empty()) std::memcpy(to + sizeof length, text.data(), text.size());
    data.Advance(sizeof length + text.size());
  }
  return {};
}

Status FillStrings(json::value value, infer::Tensor& tensor, size_t count) {
  Buffer data(8 * count);
  size_t left = count;
  TRY_STATUS(ReadStrings(value, tensor, 1, left, data));
  if (left > 0) return TooFew(tensor, count - left, count);
  tensor.data = std::move(data).Take();
  return {};
}

template <typename T>
Status FillNumbers(ArrayText array, infer::Tensor& tensor, size_t count) {
  tensor.data = Bytes::AllocateUninitialized(count * sizeof(T));
  return array.Read<T>(tensor, count);
}

}  // namespace

Status ReadJsonData(json::value value, infer::Tensor& tensor, std::string_view json_text) {
  if (KindOf(value) != Kind::kArray) return Bad("'data' is not an array");
  const int64_t elements = TRY(CountElements(tensor));
  // An element is a character and a comma or bracket at least: no memory for what cannot be there.
  if (static_cast<uint64_t>(elements) > json_text.size() / 2) {
    return Bad(fmt::format("data has fewer elements than shape {}", infer::ToString(tensor.shape)));
  }
  const auto count = static_cast<size_t>(elements);
  const ArrayText array(
      json_text.substr(static_cast<size_t>(value.raw_json_token().begin() - json_text.begin())));
  switch (tensor.dtype) {
    case infer::DType::kBool:
      return FillNumbers<bool>(array, tensor, count);
    case infer::DType::kUint8:
      return FillNumbers<uint8_t>(array, tensor, count);
    case infer::DType::kUint16:
      return FillNumbers<uint16_t>(array, tensor, count);
    case infer::DType::kUint32:
      return FillNumbers<uint32_t>(array, tensor, count);
    case infer::DType::kUint64:
      return FillNumbers<uint64_t>(array, tensor, count);
    case infer::DType::kInt8:
      return FillNumbers<int8_t>(array, tensor, count);
    case infer::DType::kInt16:
      return FillNumbers<int16_t>(array, tensor, count);
    case infer::DType::kInt32:
      return FillNumbers<int32_t>(array, tensor, count);
    case infer::DType::kInt64:
      return FillNumbers<int64_t>(array, tensor, count);
    case infer::DType::kFp32:
      return FillNumbers<float>(array, tensor, count);
    case infer::DType::kFp64:
      return FillNumbers<double>(array, tensor, count);
    case infer::DType::kBytes:
      return FillStrings(value, tensor, count);
    case infer::DType::kFp16:
      return FillNumbers<infer::Fp16>(array, tensor, count);
    case infer::DType::kBf16:
      return FillNumbers<infer::Bf16>(array, tensor, count);
  }
  return Bad(fmt::format("{} has no JSON form", infer::ToString(tensor.dtype)));
}

}  // namespace weir::oip
