#include "serve/refusal_log.h"

#include <fmt/format.h>

#include <utility>

namespace weir::serve {
namespace {
constexpr Duration kPeriod = 10s;
}  // namespace

std::optional<std::string> RefusalLog::Tell(wire::GrpcRefusal refusal, const std::string& who, Instant now) {
  int64_t untold = 0;
  {
    MutexLock lock(mutex_);
    Kind& kind = kinds_.at(static_cast<size_t>(refusal));
    if (kind.told && now - *kind.told < kPeriod) {
      ++kind.untold;
      return std::nullopt;
    }
    kind.told = now;
    untold = std::exchange(kind.untold, 0);
  }
  const std::string more = untold > 0 ? fmt::format(" ({} more since the last line)", untold) : "";
  return fmt::format("gRPC, {}: {}{}", who, wire::Explanation(refusal), more);
}

}  // namespace weir::serve
