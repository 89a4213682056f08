#include "object/header_rules.h"

#include <algorithm>

namespace weir::object {
namespace {

constexpr size_t kMostETagBytes = 1024;

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace

bool IsHeaderText(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return IsControl(c) && c != '\t'; });
}

bool IsETag(std::string_view text) {
  return !text.empty() && text.size() <= kMostETagBytes && std::ranges::none_of(text, IsControl);
}

Status CheckRequest(const HttpRequest& request) {
  const bool plain_url = std::ranges::none_of(request.url, [](char c) { return IsControl(c) || c == ' '; });
  const bool plain_headers = std::ranges::all_of(request.headers, [](const Header& each) {
    return IsHeaderText(each.first) && IsHeaderText(each.second);
  });
  if (plain_url && plain_headers) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "a request with a control character in its address or headers: it is not sent");
}

}  // namespace weir::object
