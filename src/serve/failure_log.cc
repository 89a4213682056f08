#include "serve/failure_log.h"

#include <fmt/format.h>

#include "base/json.h"

namespace weir::serve {
namespace {
constexpr int kToldInARow = 5;
constexpr Duration kPeriod = 10s;
}  // namespace

void FailureLog::Tell(const Error& error, const std::string& request_id) {
  int64_t untold = 0;
  {
    const Instant now = clock_.Now();
    MutexLock lock(mutex_);
    Kind& kind = kinds_.at(static_cast<size_t>(error.code));
    if (!kind.since || now - *kind.since >= kPeriod) {
      untold = kind.untold;
      kind = {.since = now};
    }
    if (++kind.told > kToldInARow) {
      ++kind.untold;
      return;
    }
  }
  const bool ours = error.code == ErrorCode::kInternal || error.code == ErrorCode::kIo;
  const std::string who = request_id.empty() ? "a request" : "request " + EscapeBytes(request_id);
  const std::string more =
      untold > 0 ? fmt::format(" ({} more of this kind were not told)", untold) : std::string();
  log_(ours ? LogLevel::kError : LogLevel::kWarning,
       fmt::format("{} failed: {}: {}{}", who, ToString(error.code), error.message, more));
}

}  // namespace weir::serve
