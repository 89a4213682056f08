#include "http/request_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/json.h"

namespace weir::http {
namespace {

// RFC 9110, 5.6.2, in small letters.
bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
  });
}

bool IsOneLine(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return (c < 0x20 && c != '\t') || c >= 0x7f; });
}

constexpr std::array kOwn = {"host",       "content-length", "transfer-encoding",
                             "connection", "content-type",   "inference-header-content-length",
                             "te",         "upgrade",        "expect"};

}  // namespace

Result<std::vector<RequestHeader>> ParseRequestHeaders(const std::vector<std::string>& lines) {
  std::vector<RequestHeader> headers;
  for (const std::string& line : lines) {
    const size_t colon = std::min(line.find(':'), line.size());
    RequestHeader header{.name = line.substr(0, colon),
                         .value = line.substr(std::min(colon + 1, line.size()))};
    std::ranges::transform(header.name, header.name.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t first = header.value.find_first_not_of(" \t"), last = header.value.find_last_not_of(" \t");
    header.value = first == std::string::npos ? "" : header.value.substr(first, last - first + 1);
    if (colon == line.size() || !IsToken(header.name) || !IsOneLine(header.value))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a header is \"Name: value\" in ASCII, not \"{}\"", EscapeBytes(line)));
    if (std::ranges::find(kOwn, header.name) != kOwn.end() || header.name.starts_with("grpc-"))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the header {} is set by the client itself", header.name));
    headers.push_back(std::move(header));
  }
  return headers;
}

std::string HeaderLines(const std::vector<RequestHeader>& headers) {
  std::string lines;
  for (const RequestHeader& header : headers) lines += header.name + ": " + header.value + "\r\n";
  return lines;
}

}  // namespace weir::http
