#include "advise/run_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "advise/decision.h"
#include "base/seed.h"
#include "study/measured.h"

namespace weir::advise {
namespace {

std::map<std::string, double> MetricsOf(const results::TrialResult& record) {
  const study::FlatMetrics flat = study::Flatten(record.metrics);
  return {flat.numbers.begin(), flat.numbers.end()};
}

std::optional<double> Find(const std::map<std::string, double>& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

// How far the target is missed, relative to its limit: 0 where it is met, infinite where it was not measured.
double MissOf(const Target& target, std::optional<double> value) {
  if (!value || !(*value > 0)) return std::numeric_limits<double>::infinity();
  const double ratio = target.at_most ? *value / target.limit : target.limit / *value;
  return std::max(0.0, ratio - 1);
}

SearchResult Judge(const results::TrialResult& record, const Json& factors, const Goal& goal) {
  if (record.verdict.standing >= results::Standing::kInvalid) return {.score = 0, .meets = false};
  const auto metrics = MetricsOf(record);
  SearchResult result;
  for (const Target& target : goal.targets)
    result.miss = std::max(result.miss, MissOf(target, Find(metrics, target.metric)));
  result.meets = !(result.miss > 0);
  const bool memory = goal.objective == Objective::kMemory;
  const auto value = Find(metrics, memory ? kMemoryMetric : kThroughputMetric);
  if (!value || !(*value > 0)) return {.score = 0, .meets = false};
  result.score = memory ? 1 / *value : *value;
  if (goal.objective == Objective::kCost) result.score /= *PriceOf(factors, goal);
  return result;
}

Status CheckPrices(const study::Design& design, const Goal& goal) {
  if (goal.objective != Objective::kCost) return {};
  for (const study::Configuration& one : design.configurations) {
    if (!PriceOf(one.factors, goal))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: has no price: give one by --price ARCHITECTURE=VALUE", one.label));
  }
  return {};
}

}  // namespace

std::vector<Point> PointsOf(const study::Design& design) {
  std::vector<std::string> names;
  for (const study::Configuration& one : design.configurations) {
    for (const auto& [name, level] : one.factors.items()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::vector<Point> points(design.configurations.size());
  for (const std::string& name : names) {
    std::vector<Json> levels;
    for (const study::Configuration& one : design.configurations) {
      const Json level = one.factors.contains(name) ? one.factors[name] : Json();
      if (std::ranges::find(levels, level) == levels.end()) levels.push_back(level);
    }
    if (levels.size() < 2) continue;
    if (std::ranges::all_of(levels, [](const Json& level) { return level.is_number(); }))
      std::ranges::sort(levels, {}, [](const Json& level) { return level.get<double>(); });
    for (size_t i = 0; i < points.size(); ++i) {
      const Json& factors = design.configurations[i].factors;
      const Json level = factors.contains(name) ? factors[name] : Json();
      points[i].push_back(static_cast<int>(std::ranges::find(levels, level) - levels.begin()));
    }
  }
  return points;
}

Result<SearchRun> RunSearch(const SearchInputs& inputs) {
  TRY_STATUS(CheckPrices(inputs.design, inputs.goal));
  Search search = TRY(Search::Create(PointsOf(inputs.design), inputs.options));
  SearchRun run;
  std::map<size_t, int> looks, fresh;  // trials of each candidate so far, exploring and confirming: its block
  while (const auto next = search.Next()) {
    if (inputs.stop.stop_requested()) return run;
    const bool confirms = search.phase() == Phase::kConfirmation;
    const study::Configuration& configuration = inputs.design.configurations[*next];
    const int block = (confirms ? fresh : looks)[*next]++;
    const Seed seed = Seed(inputs.options.seed)
                          .Stream(confirms ? "confirm" : "explore")
                          .Stream(static_cast<uint64_t>(block));
    const study::Trial trial{.configuration = *next,
                             .block = block,
                             .seed = seed.value(),
                             .id = fmt::format("{}-{}-{}", confirms ? "confirm" : "explore", *next, block)};
    study::PlayedTrials played = TRY(inputs.trials.Play(trial, configuration.factors, inputs.play, confirms));
    search.Take(Judge(played.record, configuration.factors, inputs.goal));
    (confirms ? run.confirmation : run.exploration).push_back(std::move(played));
    if (inputs.progress)
      inputs.progress({.phase = search.phase(), .trials = search.trials(), .label = configuration.label});
  }
  run.answer = search.answer();
  return run;
}

}  // namespace weir::advise
