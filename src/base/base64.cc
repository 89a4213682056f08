#include "base/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace weir {
namespace {

bool IsDigit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

// The library counts in int. A multiple of a group's bytes on either side.
constexpr size_t kMostAtOnce = size_t{3} << 28;

const unsigned char* Unsigned(const char* text) { return reinterpret_cast<const unsigned char*>(text); }

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.resize_and_overwrite((bytes.size() + 2) / 3 * 4 + 1, [&](char* to, size_t) {  // 1: the library's zero
    char* const begin = to;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view part = rest.substr(0, kMostAtOnce);
      to += EVP_EncodeBlock(reinterpret_cast<unsigned char*>(to), Unsigned(part.data()),
                            static_cast<int>(part.size()));
      rest.remove_prefix(part.size());
    }
    return static_cast<size_t>(to - begin);
  });
  return text;
}

bool HasBase64Only(std::string_view text) {
  bool all = true;  // without a branch for each: these are megabytes
  for (const char c : text) all &= IsDigit(c) || c == '=';
  return all;
}

size_t DecodedBytes(std::string_view text) {
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  return text.size() / 4 * 3 - std::min(padding, text.size() / 4 * 3);
}

// The library takes blanks around the text, = anywhere and bits that stand for nothing; these are refused
// here.
Status DecodeBase64(std::string_view text, std::span<char> to) {
  const auto corrupt = [] { return Fail(ErrorCode::kCorrupt, "the text is not base64"); };
  if (text.size() % 4 != 0) return corrupt();
  if (text.empty()) return {};
  const size_t bytes = DecodedBytes(text), padding = text.size() / 4 * 3 - bytes;
  const std::string_view digits = text.substr(0, text.size() - padding);
  bool all = true;
  for (const char c : digits) all &= IsDigit(c);
  if (!all) return corrupt();
  char* out = to.data();
  std::string_view rest = text.substr(0, text.size() - 4);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, kMostAtOnce / 3 * 4);
    out += EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out), Unsigned(part.data()),
                           static_cast<int>(part.size()));
    rest.remove_prefix(part.size());
  }
  std::array<unsigned char, 3> last{};
  EVP_DecodeBlock(last.data(), Unsigned(text.data() + text.size() - 4), 4);
  const std::string_view kept(reinterpret_cast<const char*>(last.data()), 3 - padding);
  if (EncodeBase64(kept) != text.substr(text.size() - 4)) return corrupt();
  std::ranges::copy(kept, out);
  return {};
}

}  // namespace weir
