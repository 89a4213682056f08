#include "serve/refusal_log.h"

#include <fmt/format.h>

#include <utility>

namespace weir::serve {
namespace {
constexpr Duration kPeriod = 10s;
}  // namespace

void RefusalLog::Tell(DoorRefusal kind, const std::string& what) {
  int64_t more = 0;
  {
    const Instant now = clock_.Now();
    MutexLock lock(mutex_);
    Kind& state = kinds_.at(static_cast<size_t>(kind));
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
