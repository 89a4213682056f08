#include "oip/http/tensor_json.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "base/json.h"
#include "base/utf8.h"
#include "infer/half.h"
#include "oip/http/json_number.h"

namespace weir::oip {
namespace {

char* Write(char* to, std::string_view text) { return std::copy(text.begin(), text.end(), to); }

template <typename T>
char* WriteNumber(char* to, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return Write(to, value ? "true" : "false");
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_chars(to, to + kNumberRoom, value).ptr;
  } else if constexpr (std::is_floating_point_v<T>) {
    return WriteJsonNumber(to, value);
  } else {
    return WriteJsonNumber(to, static_cast<float>(value));  // 16 bits
  }
}

template <typename T>
void AppendNumber(T value, Buffer& out) {
  out.AdvanceTo(WriteNumber(out.Room(kNumberRoom), value));
}

template <typename T>
void AppendNumbers(const infer::Tensor& tensor, Buffer& out) {
  constexpr size_t kBlock = 256;  // numbers for which room is made at once
  const std::byte* from = tensor.data.data();
  for (size_t left = tensor.data.size() / sizeof(T); left > 0;) {
    const size_t count = std::min(left, kBlock);
    char* to = out.Room(count * kNumberRoom);
    for (size_t i = 0; i < count; ++i, from += sizeof(T)) {
      std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> value;  // any byte but 0 is true
      std::memcpy(&value, from, sizeof value);
      to = WriteNumber(to, static_cast<T>(value));
      *to++ = ',';
    }
    left -= count;
    out.AdvanceTo(left > 0 ? to : to - 1);
  }
}

Status AppendStrings(const infer::Tensor& tensor, Buffer& out) {
  std::string_view rest = tensor.data.text();
  for (bool first = true; !rest.empty(); first = false) {
    uint32_t length = 0;
    CHECK(rest.size() >= sizeof length);
    std::memcpy(&length, rest.data(), sizeof length);
    const std::string_view text = rest.substr(sizeof length, length);
    CHECK(text.size() == length);
    rest.remove_prefix(sizeof length + length);
    if (!IsUtf8(text)) {
      return Fail(ErrorCode::kInvalidArgument,
                  "an element is not UTF-8 and has no JSON form: ask for it binary (binary_data)");
    }
    if (!first) out.Append(',');
    AppendJsonString(text, out);
  }
  return {};
}

}  // namespace

void AppendJsonString(std::string_view text, Buffer& out) {
  if (!IsUtf8(text)) return AppendJsonString(EscapeBytes(text), out);
  out.Append('"');
  size_t plain = 0;  // where the characters begin that need no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.Append(text.substr(plain, i - plain));
    plain = i + 1;
    if (c == '"' || c == '\\') {
      out.Append('\\');
      out.Append(c);
    } else {
      out.AdvanceTo(
          fmt::format_to(out.Room(kNumberRoom), FMT_COMPILE("\\u{:04x}"), static_cast<unsigned>(c)));
    }
  }
  out.Append(text.substr(plain));
  out.Append('"');
}

void AppendJsonNumber(double value, Buffer& out) { AppendNumber(value, out); }
void AppendJsonNumber(int64_t value, Buffer& out) { AppendNumber(value, out); }
void AppendJsonNumber(uint64_t value, Buffer& out) { AppendNumber(value, out); }

size_t JsonSize(const infer::Tensor& tensor) {
  switch (tensor.dtype) {
    case infer::DType::kBool:
      return 6 * tensor.data.size();
    case infer::DType::kBytes:
      return tensor.data.size() + tensor.data.size() / 8;
    case infer::DType::kFp64:
      return kNumberRoom + 20 * (tensor.data.size() / 8);
    default:
      return kNumberRoom + 12 * (tensor.data.size() / infer::ByteSize(tensor.dtype));
  }
}

Status AppendJsonData(const infer::Tensor& tensor, Buffer& out) {
  out.Append('[');
  switch (tensor.dtype) {
    case infer::DType::kBool:
      AppendNumbers<bool>(tensor, out);
      break;
    case infer::DType::kUint8:
      AppendNumbers<uint8_t>(tensor, out);
      break;
    case infer::DType::kUint16:
      AppendNumbers<uint16_t>(tensor, out);
      break;
    case infer::DType::kUint32:
      AppendNumbers<uint32_t>(tensor, out);
      break;
    case infer::DType::kUint64:
      AppendNumbers<uint64_t>(tensor, out);
      break;
    case infer::DType::kInt8:
      AppendNumbers<int8_t>(tensor, out);
      break;
    case infer::DType::kInt16:
      AppendNumbers<int16_t>(tensor, out);
      break;
    case infer::DType::kInt32:
      AppendNumbers<int32_t>(tensor, out);
      break;
    case infer::DType::kInt64:
      AppendNumbers<int64_t>(tensor, out);
      break;
    case infer::DType::kFp32:
      AppendNumbers<float>(tensor, out);
      break;
    case infer::DType::kFp64:
      AppendNumbers<double>(tensor, out);
      break;
    case infer::DType::kBytes:
      TRY_STATUS(AppendStrings(tensor, out));
      break;
    case infer::DType::kFp16:
      AppendNumbers<infer::Fp16>(tensor, out);
      break;
    case infer::DType::kBf16:
      AppendNumbers<infer::Bf16>(tensor, out);
      break;
  }
  out.Append(']');
  return {};
}

}  // namespace weir::oip
