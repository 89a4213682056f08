#include "load/verdict/level_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/count.h"

namespace weir::load {

void MergeVerdict(results::Verdict& sum, const results::Verdict& more) {
  for (const results::Cause& cause : more.causes) {
    if (std::ranges::find(sum.causes, cause.reason, &results::Cause::reason) == sum.causes.end())
      sum.causes.push_back(cause);
  }
  sum.standing = std::max(sum.standing, more.standing);
}

void JudgeSpread(const std::vector<RunOutcome>& repeats, double percentage, Claims& claims) {
  if (repeats.size() < 2) return;
  const auto judge = [&](auto value, const char* what, results::Verdict& verdict) {
    const auto [low, high] = std::ranges::minmax_element(repeats, {}, value);
    const double least = value(*low), most = value(*high);
    if (least > 0 && most / least <= 1 + percentage / 100) return;
    verdict.Add(results::Standing::kSuspect,
                {results::Reason::kNoSteadyState,
                 fmt::format("{} of the repeats lies between {} and {}, more than {:g} % apart", what,
                             Short(least), Short(most), percentage)});
  };
  judge([](const RunOutcome& p) { return p.throughput(); }, "the throughput", claims.throughput);
  judge([](const RunOutcome& p) { return 1e-6 * p.tally.response.Mean().value_or(0); },
        "the mean response time", claims.latency);
}

std::optional<stats::Answer> BelowThreshold(const Tally& tally, double p, double threshold_ms) {
  if (threshold_ms <= 0) return std::nullopt;
  const int64_t lost = tally.planned() - tally.answered();
  const int64_t over = tally.response.CountAbove(FromSeconds(threshold_ms / 1e3).count()) + lost;
  return stats::QuantileIsBelow(p, tally.planned(), over);
}

Environment FindEnvironment(const RunSurroundings& around) {
  Environment found{.rate = {},
                    .ceiling_per_s = around.ceiling_per_s,
                    .rate_changes = HasProfile(around.scenario),
                    .cpus = around.cpus,
                    .steal_percent = {},
                    .foreign_cpu = {},
                    .throttled_s = {}};
  if (const auto* open = std::get_if<Rate>(&around.scenario)) found.rate = open->per_second;
  if (!around.resources) return found;
  const monitor::Resources& r = *around.resources;
  found.steal_percent = r.steal_percent;
  found.throttled_s = r.throttled_s;
  if (r.client_cpu && r.app_cpu && (around.is_local || around.server_resources)) {
    double ours = r.app_cpu->mean + (r.recogniser_cpu ? r.recogniser_cpu->mean : 0) + r.observer_cpu;
    if (around.server_resources && around.server_resources->app_cpu)
      ours += around.server_resources->app_cpu->mean;
    found.foreign_cpu = std::max(0.0, r.client_cpu->mean - ours);
  }
  return found;
}

}  // namespace weir::load
