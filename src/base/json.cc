#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/text.h"
#include "base/utf8.h"

namespace weir {
namespace {

std::unexpected<Error> MissingKey(std::string_view key, std::string_view wanted) {
  return Fail(ErrorCode::kCorrupt, fmt::format("key \"{}\" is missing or is not {}", key, wanted));
}

}  // namespace

std::string EscapeBytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    if (length == 0) {
      fmt::format_to(std::back_inserter(text), "\\x{:02X}", static_cast<unsigned char>(bytes[0]));
    } else if (bytes[0] == '\\') {
      text += "\\\\";
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

Result<std::string> UnescapeBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      bytes += '\\';
      i += 1;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && HexDigit(text[i + 2]) >= 0 &&
               HexDigit(text[i + 3]) >= 0) {
      bytes += static_cast<char>(HexDigit(text[i + 2]) * 16 + HexDigit(text[i + 3]));
      i += 3;
    } else {
      return Fail(ErrorCode::kCorrupt, fmt::format("a backslash at byte {} starts no escape", i));
    }
  }
  return bytes;
}

std::string EscapeForTerminal(std::string_view bytes) {
  const std::string escaped = EscapeBytes(bytes);
  std::string text;
  text.reserve(escaped.size());
  for (size_t i = 0; i < escaped.size(); ++i) {
    const auto byte = static_cast<unsigned char>(escaped[i]);
    // U+0080 to U+009F: some terminals take them as they take ESC and a letter.
    const bool of_two = byte == 0xc2 && static_cast<unsigned char>(escaped[i + 1]) < 0xa0;
    if (of_two) {
      fmt::format_to(std::back_inserter(text), "\\xC2\\x{:02X}", static_cast<unsigned char>(escaped[++i]));
    } else if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      fmt::format_to(std::back_inserter(text), "\\x{:02X}", byte);
    } else {
      text += escaped[i];
    }
  }
  return text;
}

Result<std::string> GetString(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return MissingKey(key, "text");
  return found->get<std::string>();
}

Result<int64_t> GetInteger(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) {
    return MissingKey(key, "a whole number");
  }
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return MissingKey(key, "a whole number of 64 bits");
  }
  return found->get<int64_t>();
}

Result<double> GetNumber(const Json& json, std::string_view key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return MissingKey(key, "a number");
  return found->get<double>();
}

}  // namespace weir
