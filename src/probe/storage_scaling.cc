#include "probe/storage_scaling.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "stats/paired.h"
#include "stats/summary.h"

namespace weir::probe {
namespace {

constexpr double kKept = 0.99;  // of the rate, with a latency that does not matter

Estimate EstimateOf(const std::vector<double>& values) {
  const auto summary = stats::Summarise(values);
  if (!summary) return {};
  return {summary->mean, summary->low, summary->high};
}

// Returns the gain of unit `k` over the mean of a unit before it, in one round.
double ShareOf(double with, double before, size_t k) {
  return before > 0 ? (with - before) / (before / static_cast<double>(k)) : 0;
}

std::optional<int> Enough(const std::vector<LatencyLevel>& levels) {
  std::optional<int> enough;
  for (const LatencyLevel& level : levels) {
    if (level.kept.value < kKept) {
      enough.reset();
    } else if (!enough) {
      enough = level.reads_in_flight;
    }
  }
  return enough;
}

Result<LatencyLevel> MeasureLevel(int reads_in_flight, int rounds, const LatencyTrial& trial) {
  std::vector<double> plain, delayed;
  for (int round = 0; round < rounds; ++round) {
    const bool delayed_first = round % 2 == 1;
    for (const bool is_delayed : {delayed_first, !delayed_first})
      (is_delayed ? delayed : plain).push_back(TRY(trial(reads_in_flight, is_delayed, round)));
  }
  LatencyLevel level{.reads_in_flight = reads_in_flight,
                     .samples_per_s = EstimateOf(plain),
                     .delayed_samples_per_s = EstimateOf(delayed)};
  if (const auto ratio = stats::PairedRatio(delayed, plain))
    level.kept = {ratio->ratio, ratio->low, ratio->high};
  return level;
}

}  // namespace

Result<std::vector<UnitRate>> MeasureUnits(const std::vector<std::string>& paths, int rounds,
                                           const UnitTrial& trial) {
  const size_t units = paths.size();
  std::vector<std::vector<double>> rates(units, std::vector<double>(static_cast<size_t>(rounds)));
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < units; ++i) {
      const size_t k = round % 2 == 0 ? i : units - 1 - i;
      rates[k][static_cast<size_t>(round)] = TRY(trial(static_cast<int>(k) + 1, round));
    }
  }
  std::vector<UnitRate> measured;
  for (size_t k = 0; k < units; ++k) {
    UnitRate unit{.path = paths[k], .samples_per_s = EstimateOf(rates[k])};
    if (k > 0) {
      std::vector<double> shares;
      for (size_t round = 0; round < rates[k].size(); ++round)
        shares.push_back(ShareOf(rates[k][round], rates[k - 1][round], k));
      unit.share = EstimateOf(shares);
    }
    measured.push_back(std::move(unit));
  }
  return measured;
}

bool AreUnequal(const std::vector<UnitRate>& units) {
  constexpr double kMostRatio = 1.25;
  const auto alone = [](const UnitRate& unit) { return unit.alone ? unit.alone->value : 0; };
  if (units.empty() || std::ranges::any_of(units, [](const UnitRate& unit) { return !unit.alone; }))
    return false;
  const auto [least, most] = std::ranges::minmax(units, {}, alone);
  return alone(most) > kMostRatio * alone(least);
}

Result<std::vector<UnitRate>> MeasureStorages(const std::vector<std::string>& paths, int rounds,
                                              const StoragesTrial& trial) {
  std::vector<std::vector<double>> rates(paths.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < paths.size(); ++i) {
      const size_t k = round % 2 == 0 ? i : paths.size() - 1 - i;
      rates[k].push_back(TRY(trial({k}, round)));
    }
  }
  std::vector<UnitRate> alone;
  for (size_t k = 0; k < paths.size(); ++k)
    alone.push_back({.path = paths[k], .samples_per_s = {}, .share = {}, .alone = EstimateOf(rates[k])});
  const bool unequal = AreUnequal(alone);
  std::vector<size_t> order(paths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (unequal)
    std::ranges::stable_sort(order, std::greater(), [&](size_t k) { return alone[k].alone->value; });
  std::vector<std::string> names;
  for (const size_t k : order) names.push_back(paths[k]);
  auto measured = TRY(MeasureUnits(names, rounds, [&](int units, int round) {
    return trial({order.begin(), order.begin() + units}, round);
  }));
  for (size_t i = 0; i < order.size(); ++i) {
    measured[i].alone = alone[order[i]].alone;
    if (unequal) measured[i].share.reset();
  }
  return measured;
}

Result<LatencyAnswer> MeasureLatency(Duration added, double demand_samples_per_s,
                                     const std::vector<int>& levels, int rounds, const LatencyTrial& trial) {
  LatencyAnswer answer{.added = added, .demand_samples_per_s = demand_samples_per_s};
  int kept_in_a_row = 0;
  for (const int level : levels) {
    answer.levels.push_back(TRY(MeasureLevel(level, rounds, trial)));
    kept_in_a_row = answer.levels.back().kept.value >= kKept ? kept_in_a_row + 1 : 0;
    if (kept_in_a_row == 2) break;
  }
  answer.enough = Enough(answer.levels);
  return answer;
}

}  // namespace weir::probe
