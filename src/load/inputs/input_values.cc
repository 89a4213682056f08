#include "load/inputs/input_values.h"

#include <fmt/format.h>

#include <cfloat>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "load/inputs/requests.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::ToString;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::optional<Bytes> DecodeText(std::string_view text) {
  Bytes bytes = Bytes::AllocateUninitialized(DecodedBytes(text));
  if (!DecodeBase64(text, {reinterpret_cast<char*>(bytes.mutable_data()), bytes.size()})) return std::nullopt;
  return bytes;
}

// Elements of BYTES data; nothing where a length does not fit.
std::optional<int64_t> CountTexts(std::span<const std::byte> data) {
  int64_t count = 0;
  for (; !data.empty(); ++count) {
    uint32_t length = 0;
    if (data.size() < sizeof length) return std::nullopt;
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (data.size() < length) return std::nullopt;
    data = data.subspan(length);
  }
  return count;
}

template <typename T>
std::optional<T> ToInteger(const Json& json) {
  if (json.is_number_unsigned() && std::in_range<T>(json.get<uint64_t>()))
    return static_cast<T>(json.get<uint64_t>());
  if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<int64_t>()))
    return static_cast<T>(json.get<int64_t>());
  return std::nullopt;
}

std::optional<uint8_t> ToBool(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  const auto number = ToInteger<uint8_t>(json);
  return number && *number <= 1 ? number : std::nullopt;
}

std::optional<double> ToDouble(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

std::optional<float> ToFloat(const Json& json) {
  const auto number = ToDouble(json);
  if (!number || *number > FLT_MAX || *number < -FLT_MAX) return std::nullopt;
  return static_cast<float>(*number);
}

// The first element for which `to` has no answer is named.
template <typename To>
Result<Bytes> ReadNumbers(const Json& list, DType dtype, To to) {
  using T = typename decltype(to(list))::value_type;
  Bytes data = Bytes::AllocateUninitialized(list.size() * sizeof(T));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<T> value = to(list[i]);
    if (!value) {
      return Invalid(
          fmt::format("value {} is no {} that it can hold: give a flat list of such numbers in "
                      "row-major order, or their bytes as \"b64\"",
                      i, ToString(dtype)));
    }
    std::memcpy(data.mutable_data() + i * sizeof(T), &*value, sizeof(T));
  }
  return data;
}

Result<Bytes> ReadTexts(const Json& list) {
  std::string data;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string())
      return Invalid(fmt::format("value {} is no text: give a flat list of texts in quotes", i));
    data += ToElement(list[i].get_ref<const std::string&>()).text();
  }
  return Bytes::Copy(data);
}

}  // namespace

Result<Bytes> ReadList(const Json& list, DType dtype) {
  const auto sixteen = [](std::optional<uint16_t> (*round)(double)) {
    return [round](const Json& json) {
      const auto number = ToDouble(json);
      return number ? round(*number) : std::nullopt;
    };
  };
  switch (dtype) {
    case DType::kBool:
      return ReadNumbers(list, dtype, ToBool);
    case DType::kUint8:
      return ReadNumbers(list, dtype, ToInteger<uint8_t>);
    case DType::kUint16:
      return ReadNumbers(list, dtype, ToInteger<uint16_t>);
    case DType::kUint32:
      return ReadNumbers(list, dtype, ToInteger<uint32_t>);
    case DType::kUint64:
      return ReadNumbers(list, dtype, ToInteger<uint64_t>);
    case DType::kInt8:
      return ReadNumbers(list, dtype, ToInteger<int8_t>);
    case DType::kInt16:
      return ReadNumbers(list, dtype, ToInteger<int16_t>);
    case DType::kInt32:
      return ReadNumbers(list, dtype, ToInteger<int32_t>);
    case DType::kInt64:
      return ReadNumbers(list, dtype, ToInteger<int64_t>);
    case DType::kFp16:
      return ReadNumbers(list, dtype, sixteen(ToFp16));
    case DType::kBf16:
      return ReadNumbers(list, dtype, sixteen(ToBf16));
    case DType::kFp32:
      return ReadNumbers(list, dtype, ToFloat);
    case DType::kFp64:
      return ReadNumbers(list, dtype, ToDouble);
    case DType::kBytes:
      return ReadTexts(list);
  }
  return Invalid("of a type that is not known");
}

Result<Bytes> ReadBase64(const Json& text) {
  auto bytes = text.is_string() ? DecodeText(text.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes)
    return Invalid("\"b64\" is no base64: give it padded and without line breaks, as `base64 -w 0` does");
  return *std::move(bytes);
}

Result<int64_t> CountElements(const Bytes& data, DType dtype) {
  if (dtype == DType::kBytes) {
    if (const auto count = CountTexts(data.span())) return *count;
    return Invalid("the bytes are no texts: each begins with its length, 4 bytes, little-endian");
  }
  const size_t each = infer::ByteSize(dtype);
  if (data.size() % each != 0) {
    return Invalid(fmt::format("{} bytes are no whole elements of {}, {} bytes each", data.size(),
                               ToString(dtype), each));
  }
  return static_cast<int64_t>(data.size() / each);
}

std::optional<int64_t> ReadSize(const Json& json) {
  const auto size = ToInteger<int64_t>(json);
  return size && *size >= 0 ? size : std::nullopt;
}

}  // namespace weir::load
