#include "report/escape.h"

#include <algorithm>
#include <cctype>

#include "base/json.h"

namespace weir::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// With U+FFFD for each byte that is no UTF-8: JSON's writer does just that.
std::string ToUtf8(std::string_view text) {
  const auto plain = [](unsigned char c) { return c < 0x80; };
  if (std::ranges::all_of(text, plain)) return std::string(text);
  return ParseJson(DumpJson(Json(std::string(text)))).value_or(Json("")).get<std::string>();
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : ToUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
        out += control ? std::string(kReplacement) : std::string(1, c);
      }
    }
  }
  return out;
}

std::string EscapeUrl(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::string EscapeMarkdown(std::string_view text) {
  std::string out;
  for (const char c : ToUtf8(text)) {
    if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|~#").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace weir::report
