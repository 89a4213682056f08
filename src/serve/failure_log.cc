#include "serve/failure_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/text.h"

namespace weir::serve {
namespace {

constexpr size_t kToldInARow = 5;
constexpr Duration kPeriod = 10s;
constexpr size_t kMaxId = 200, kMaxMessage = 1500;  // bytes

LogLevel LevelOf(ErrorCode code) {
  const bool ours = code == ErrorCode::kInternal || code == ErrorCode::kIo;
  return ours ? LogLevel::kError : LogLevel::kWarning;
}

}  // namespace

std::string FailureLog::Renew(ErrorCode code, Kind& kind, Instant now) {
  if (kind.since && now - *kind.since < kPeriod) return "";
  const int64_t untold = kind.untold;
  kind = {};
  if (untold == 0) return "";
  return fmt::format("{} more requests failed in {:.0f} s ({})", untold, Seconds(kPeriod), ToString(code));
}

void FailureLog::Tell(const Error& error, const std::string& request_id) {
  const std::string message = CutMiddle(error.message, kMaxMessage);
  std::string counts;
  bool tells = false;
  {
    const Instant now = clock_.Now();
    const size_t hash = std::hash<std::string>{}(message);
    MutexLock lock(mutex_);
    Kind& kind = kinds_.at(static_cast<size_t>(error.code));
    counts = Renew(error.code, kind, now);
    if (!kind.since) kind.since = now;
    tells = kind.told.size() < kToldInARow && std::ranges::find(kind.told, hash) == kind.told.end();
    if (tells) {
      kind.told.push_back(hash);
    } else {
      ++kind.untold;
    }
  }
  const LogLevel level = LevelOf(error.code);
  if (!counts.empty()) log_(level, counts);
  if (!tells) return;
  const std::string who = request_id.empty() ? "a request" : "request " + CutMiddle(request_id, kMaxId);
  log_(level, fmt::format("{} failed: {}: {}", who, ToString(error.code), message));
}

void FailureLog::TellCounts() {
  constexpr size_t kCodes = std::tuple_size_v<decltype(kinds_)>;
  for (size_t i = 0; i < kCodes; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    std::string counts;
    {
      MutexLock lock(mutex_);
      counts = Renew(code, kinds_.at(i), clock_.Now());
    }
    if (!counts.empty()) log_(LevelOf(code), counts);
  }
}

}  // namespace weir::serve
