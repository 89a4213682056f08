#include "http/listen_place.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"

namespace weir::http {

Result<ListenPlace> ParseListenPlace(const std::string& flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    const char* const end = text.data() + text.size();
    const auto [rest, fault] = std::from_chars(text.data() + colon + 1, end, port);
    if (fault != std::errc{} || rest != end) port = -1;
  }
  if (port < 0 || port > 65535)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} {}: give HOST:PORT, as in 127.0.0.1:8080", flag, EscapeBytes(text)));
  return ListenPlace{text.substr(0, colon), port};
}

}  // namespace weir::http
