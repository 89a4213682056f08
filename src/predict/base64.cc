#include "predict/base64.h"

#include <array>
#include <cstdint>

namespace weir::predict {
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

Result<std::string> DecodeBase64(std::string_view text) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "a block of numbers is not base64"); };
  if (text.size() % 4 != 0) return corrupt();
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const bool padded = i + j >= text.size() - padding;
      const int value = padded ? 0 : kValues[static_cast<unsigned char>(text[i + j])];
      if (value < 0) return corrupt();
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 255);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace weir::predict
