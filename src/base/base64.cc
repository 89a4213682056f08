#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace weir {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeValues() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}
constexpr std::array<int8_t, 256> kValues = MakeValues();

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

bool HasBase64Only(std::string_view text) {
  bool all = true;  // without a branch for each: these are megabytes
  for (const char c : text) all &= kValues[static_cast<unsigned char>(c)] >= 0 || c == '=';
  return all;
}

size_t DecodedBytes(std::string_view text) {
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  return text.size() / 4 * 3 - std::min(padding, text.size() / 4 * 3);
}

Status DecodeBase64(std::string_view text, std::span<char> to) {
  int seen = 0;  // below 0 where a character is none
  const auto value = [&](size_t at) {
    const int one{kValues[static_cast<unsigned char>(text[at])]};
    seen |= one;
    return static_cast<uint32_t>(one);
  };
  const size_t bytes = DecodedBytes(text), whole = bytes / 3;
  for (size_t i = 0; i < whole; ++i) {
    const size_t at = 4 * i;
    const uint32_t group = value(at) << 18 | value(at + 1) << 12 | value(at + 2) << 6 | value(at + 3);
    to[3 * i] = static_cast<char>(group >> 16);
    to[3 * i + 1] = static_cast<char>(group >> 8);
    to[3 * i + 2] = static_cast<char>(group);
  }
  if (const size_t left = bytes - 3 * whole; left > 0) {
    const size_t at = 4 * whole;
    const uint32_t group = value(at) << 18 | value(at + 1) << 12 | (left == 2 ? value(at + 2) << 6 : 0);
    to[3 * whole] = static_cast<char>(group >> 16);
    if (left == 2) to[3 * whole + 1] = static_cast<char>(group >> 8);
  }
  if (seen >= 0 && text.size() % 4 == 0) return {};
  return Fail(ErrorCode::kCorrupt, "a block of numbers is not base64");
}

}  // namespace weir
