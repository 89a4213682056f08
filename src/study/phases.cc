#include "study/phases.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stats/summary.h"
#include "study/choices.h"
#include "study/factor.h"

namespace weir::study {
namespace {

struct PhaseMetric {
  const char *phase, *metric, *beside;
  bool lower_is_better = false;
};
constexpr PhaseMetric kMetrics[] = {
    {"serve", "throughput_images_per_s", "none"},
    {"serve", "response_ms.p99", "none", true},
    {"feed", "beside.feed.per_s", "feed"},
    {"prepare", "beside.prepare.per_s", "prepare"},
};

std::string BesideOf(const Configuration& one) {
  return one.factors.value("beside", std::string(ToString(Beside::kNone)));
}

Json LimitsOf(const Configuration& one) { return one.factors.value("limits", Json("none")); }

// The factors that phases and their limits do not touch.
Json OthersOf(const Configuration& one) {
  Json others = one.factors;
  for (const char* name : {"beside", "limits", "load", "mode", "in_flight"}) others.erase(name);
  return others;
}

// An open loop's rate; more than any for other loads.
double RateOf(const Configuration& one) {
  const Json load = one.factors.value("load", Json());
  return load.is_object() ? load.value("rate_per_s", 1e18) : 1e18;
}

double MeanOf(const Measured& measured, size_t configuration, const char* metric) {
  const auto summary = stats::Summarise(measured.Values(configuration, metric));
  return summary ? summary->mean : 0;
}

// The configuration in which a phase of `together` runs alone.
std::optional<size_t> AloneOf(const Design& design, const Configuration& together,
                              const PhaseMetric& metric) {
  const bool is_serve = std::string_view(metric.phase) == "serve";
  const Json others = OthersOf(together);
  std::optional<size_t> found;
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    const Configuration& one = design.configurations[i];
    if (BesideOf(one) != metric.beside || LimitsOf(one) != "none" || OthersOf(one) != others) continue;
    if (is_serve && one.factors.value("load", Json()) != together.factors.value("load", Json())) continue;
    if (!found || RateOf(one) < RateOf(design.configurations[*found])) found = i;
  }
  return found;
}

// The share kept: how many times as good as alone.
double ShareOf(const PhaseKept& one) {
  const bool lower = std::ranges::any_of(kMetrics, [&](const PhaseMetric& metric) {
    return one.metric == metric.metric && metric.lower_is_better;
  });
  return lower ? 1 / one.ratio.ratio : one.ratio.ratio;
}

void Recommend(const Measured& measured, const AnalysisOptions& options, PhaseTable& table) {
  std::map<std::string, double> least;  // by limits
  std::map<std::string, std::vector<const PhaseKept*>> by_metric;
  for (const PhaseKept& one : table.kept) {
    const auto [at, is_new] = least.try_emplace(one.limits, ShareOf(one));
    if (!is_new) at->second = std::min(at->second, ShareOf(one));
    by_metric[one.metric].push_back(&one);
  }
  if (least.size() < 2) {
    table.why_not = least.empty() ? "no phase has trials that count, alone and beside the others"
                                  : "trials that count are of one level of limits";
    return;
  }
  std::vector<Comparison> between;
  for (const auto& [metric, rows] : by_metric) {
    for (size_t a = 0; a < rows.size(); ++a) {
      for (size_t b = a + 1; b < rows.size(); ++b) {
        if (auto one = Compare(measured, rows[b]->configuration, rows[a]->configuration, metric, options))
          between.push_back(*std::move(one));
      }
    }
  }
  std::vector<Tested*> family;
  for (Comparison& one : between) family.push_back(&one);
  AdjustFamily(family, options);
  const bool differ = std::ranges::any_of(
      between, [](const Comparison& one) { return one.told == Told::kHigher || one.told == Told::kLower; });
  if (!differ) {
    table.why_not = "no difference between the limits is shown";
    return;
  }
  const auto best = std::ranges::max_element(least, {}, [](const auto& one) { return one.second; });
  table.recommended = best->first;
  table.least_kept = best->second;
}

}  // namespace

std::optional<PhaseTable> ComparePhases(const Design& design, const Measured& measured,
                                        const AnalysisOptions& options) {
  PhaseTable table;
  size_t most = 0;  // length of the level that names the most phases
  for (const Configuration& one : design.configurations)
    if (BesideOf(one) != ToString(Beside::kNone)) most = std::max(most, BesideOf(one).size());
  if (most == 0) return std::nullopt;
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    const Configuration& together = design.configurations[i];
    if (BesideOf(together).size() != most) continue;
    for (const PhaseMetric& metric : kMetrics) {
      const auto alone = AloneOf(design, together, metric);
      if (!alone || *alone == i) continue;
      auto compared = Compare(measured, i, *alone, metric.metric, options);
      if (!compared) continue;
      PhaseKept kept;
      static_cast<Comparison&>(kept) = *std::move(compared);
      kept.phase = metric.phase;
      kept.limits = LevelText("limits", LimitsOf(together));
      kept.alone = MeanOf(measured, *alone, metric.metric);
      kept.together = MeanOf(measured, i, metric.metric);
      table.kept.push_back(std::move(kept));
    }
  }
  std::vector<Tested*> family;
  for (PhaseKept& one : table.kept) family.push_back(&one);
  AdjustFamily(family, options);
  Recommend(measured, options, table);
  return table;
}

}  // namespace weir::study
