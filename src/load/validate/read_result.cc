#include "load/validate/read_result.h"

#include <algorithm>
#include <optional>

#include "load/verdict/judge.h"

namespace weir::load {
namespace {

using results::LoadResult;

void TakeBackOutside(const std::optional<LoadResult::Times>& send, LoadResult::Times& times) {
  if (!send) return;
  const auto take_back = [&](const char* name, const std::optional<double>& of_send) {
    const auto found = times.intervals_95.find(name);
    if (found == times.intervals_95.end()) return;
    // The writer took the same number away. The sum may miss the first value by a rounding error.
    constexpr double kRounding = 1e-9;
    auto& [low, high] = found->second;
    low += OutsideOfServer(of_send, times.min);
    if (low > high && low <= high * (1 + kRounding)) low = high;
  };
  take_back(LoadResult::kMean, send->mean);
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i)
    take_back(LoadResult::kPercentiles[i].first, send->percentiles[i]);
}

}  // namespace

Result<LoadResult> ReadResult(const Json& json) {
  LoadResult result = TRY(LoadResult::FromJson(json));
  for (LoadResult::Level& level : result.levels) {
    if (level.load_model == LoadResult::kOpen) level.concurrency.reset();
    TakeBackOutside(level.client_send, level.response);
    TakeBackOutside(level.client_send, level.service);
    TakeBackOutside(level.client_send, level.first_byte);
    for (LoadResult::Run& run : level.runs) TakeBackOutside(run.client_send, run.response);
  }
  return result;
}

bool HasReason(const LoadResult::Level& level, results::Reason reason) {
  return std::ranges::find(level.reasons, ToString(reason), &LoadResult::Reason::reason) !=
         level.reasons.end();
}

bool IsInvalidFor(const LoadResult::Level& level, results::Reason reason) {
  const std::string_view invalid = ToString(results::Standing::kInvalid);
  return level.verdict.throughput == invalid && level.verdict.latency == invalid && HasReason(level, reason);
}

}  // namespace weir::load
