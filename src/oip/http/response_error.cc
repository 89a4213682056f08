#include "oip/http/response_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "oip/status.h"

namespace weir::oip {

Error ErrorOf(const http::HttpClientResponse& answer) {
  constexpr size_t kMostWords = 200;
  const ErrorCode code = FromHttpStatus(answer.status);
  if (const auto json = ParseJson(answer.body.text(), {.bytes = 64 << 10, .values = 1024})) {
    if (const auto words = GetString(*json, "error"))
      return {code, CutToOneLine(*words, kMaxServerErrorText)};
  }
  std::string words(answer.body.text().substr(0, kMostWords));
  std::ranges::replace(words, '\n', ' ');
  return {code, fmt::format("the server answered with HTTP status {}{}{}", answer.status,
                            words.empty() ? "" : ": ", EscapeBytes(words))};
}

}  // namespace weir::oip
