#include "serve/refusal_log.h"

#include <fmt/format.h>

#include <utility>

namespace weir::serve {
namespace {
constexpr Duration kPeriod = 10s;
}  // namespace

void RefusalLog::Tell(std::string_view kind, const std::string& what) {
  int64_t more = 0;
  {
    const Instant now = clock_.Now();
    MutexLock lock(mutex_);
    auto found = kinds_.find(kind);
    if (found == kinds_.end()) found = kinds_.emplace(kind, Kind{}).first;
    Kind& state = found->second;
    if (state.written && now - *state.written < kPeriod) {
      ++state.since;
      return;
    }
    state.written = now;
    more = std::exchange(state.since, 0);
  }
  log_(LogLevel::kWarning,
       more > 0 ? fmt::format("{} ({} more since the last such line)", what, more) : what);
}

}  // namespace weir::serve
