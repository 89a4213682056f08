#include "watch/stream_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"

namespace weir::watch {
namespace {

std::unexpected<Error> Refuse(std::string words) {
  return Fail(ErrorCode::kInvalidArgument, std::move(words));
}

Status TakeUser(std::string_view user, StreamUrl& parts) {
  const size_t colon = std::min(user.find(':'), user.size());
  const auto name = DecodePercent(user.substr(0, colon));
  const auto password = DecodePercent(user.substr(std::min(colon + 1, user.size())));
  if (!name || !password) return Refuse(fmt::format("its user or password has a wrong %: {}", kEncodeAdvice));
  parts.user = *name;
  parts.password = *password;
  return {};
}

}  // namespace

Result<StreamUrl> SplitStreamUrl(std::string_view given, uint16_t port) {
  const std::string url = WithEncodedUser(given);
  StreamUrl parts;
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return Refuse("it is no URL");
  std::string_view rest = std::string_view(url).substr(scheme + 3);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  rest = rest.substr(0, rest.find('#'));
  if (!rest.empty()) parts.path = rest.starts_with('?') ? fmt::format("/{}", rest) : std::string(rest);
  if (std::ranges::any_of(parts.path, [](char c) { return (c >= 0 && c <= ' ') || c == '\x7f'; }))
    return Refuse("the path has a blank: write %20");
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    TRY_STATUS(TakeUser(authority.substr(0, at), parts));
    authority.remove_prefix(at + 1);
  }
  const size_t colon = authority.rfind(':'), bracket = authority.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  parts.server = TRY(http::ParseServerUrl(has_port ? fmt::format("http://{}", authority)
                                                   : fmt::format("http://{}:{}", authority, port)));
  return parts;
}

}  // namespace weir::watch
