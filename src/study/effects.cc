// The effect of each factor, and the drift of the machine: the parts of the analysis over several
// configurations.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "study/analysis.h"
#include "study/combinations.h"
#include "study/factor.h"

namespace weir::study {
namespace {

using Pair = std::pair<size_t, size_t>;  // configurations: from, to

std::map<std::string, size_t> IndexOf(const std::vector<Combination>& combinations) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < combinations.size(); ++i) index.emplace(DumpJson(combinations[i].factors), i);
  return index;
}

// Combinations as they were spelled out, before the rules took factors away: in one process there is no
// protocol, and yet the step from there to a microservice is one of architecture alone.
std::set<Pair> PairsOf(const Design& design, const std::map<std::string, size_t>& index,
                       const std::string& factor, const Json& from, const Json& to) {
  std::set<Pair> pairs;
  for (const Combination& one : design.combinations) {
    const auto level = one.factors.find(factor);
    if (level == one.factors.end() || *level != from || !one.configuration) continue;
    Json other = one.factors;
    other[factor] = to;
    const auto found = index.find(DumpJson(other));
    if (found == index.end()) continue;
    const auto configuration = design.combinations[found->second].configuration;
    if (configuration && *configuration != *one.configuration)
      pairs.emplace(*one.configuration, *configuration);
  }
  return pairs;
}

// Returns the mean log ratio of the pairs of each block in which all pairs count. A pair without a
// measurement, for example of a skipped configuration, is left out and not counted.
std::vector<double> LogRatios(const Measured& measured, const std::set<Pair>& pairs,
                              const std::string& metric, int64_t& used) {
  std::map<int, std::vector<double>> by_block;
  used = 0;
  for (const auto& [from, to] : pairs) {
    const auto under = measured.ByBlock(from, metric), over = measured.ByBlock(to, metric);
    bool any = false;
    for (const auto& [block, value] : over) {
      const auto reference = under.find(block);
      if (reference == under.end() || !(value > 0) || !(reference->second > 0)) continue;
      by_block[block].push_back(std::log(value / reference->second));
      any = true;
    }
    used += any;
  }
  std::vector<double> means;
  for (const auto& [block, logs] : by_block) {
    if (std::ssize(logs) != used) continue;
    means.push_back(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()));
  }
  return means;
}

std::vector<Json> LevelsOf(const Design& design, const std::string& factor) {
  std::vector<Json> levels;
  for (const Combination& one : design.combinations) {
    const auto level = one.factors.find(factor);
    if (level != one.factors.end() && std::ranges::find(levels, *level) == levels.end())
      levels.push_back(*level);
  }
  return levels;
}

// The mean of the logarithms of a block's reference trials, by block.
std::map<int, double> LogMeans(const Measured& measured, const std::string& metric) {
  std::map<int, std::vector<double>> logs;
  for (const Role role : {Role::kReferenceStart, Role::kReferenceMiddle, Role::kReferenceEnd}) {
    for (const auto& [block, value] : measured.References(role, metric)) {
      if (value > 0) logs[block].push_back(std::log(value));
    }
  }
  std::map<int, double> means;
  for (const auto& [block, values] : logs)
    means[block] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return means;
}

std::optional<stats::Ratio> EndOverStart(const Measured& measured, const std::string& metric,
                                         double confidence) {
  const auto starts = measured.References(Role::kReferenceStart, metric);
  std::vector<double> end, start;
  for (const auto& [block, value] : measured.References(Role::kReferenceEnd, metric)) {
    const auto found = starts.find(block);
    if (found == starts.end()) continue;
    end.push_back(value);
    start.push_back(found->second);
  }
  return stats::PairedRatio(end, start, confidence);
}

}  // namespace

std::vector<Effect> FindEffects(const StudyFile& study, const Design& design, const Measured& measured,
                                const AnalysisOptions& options) {
  const auto index = IndexOf(design.combinations);
  const Json base = BaseCombination(study);
  std::vector<Effect> effects;
  for (const Factor& factor : Factors()) {
    const std::string name(factor.name);
    if (!base.contains(name)) continue;
    for (const Json& to : LevelsOf(design, name)) {
      if (to == base[name]) continue;
      Effect effect{.factor = name, .from = base[name], .to = to, .metric = study.objective.metric};
      const auto pairs = PairsOf(design, index, name, effect.from, to);
      const std::vector<double> logs = LogRatios(measured, pairs, effect.metric, effect.pairs);
      const auto ratio = stats::RatioOfLogs(logs, options.confidence);
      if (!ratio) continue;
      effect.ratio = *ratio;
      effect.told = Tell(*ratio, options);
      effects.push_back(std::move(effect));
    }
  }
  return effects;
}

StudyDrift FindStudyDrift(const Measured& measured, const std::string& metric,
                          const AnalysisOptions& options) {
  const std::map<int, double> means = LogMeans(measured, metric);
  StudyDrift drift{.metric = metric, .blocks = std::ssize(means)};
  drift.within_block = EndOverStart(measured, metric, options.confidence);
  if (means.empty()) return drift;
  std::vector<double> blocks, logs;
  for (const auto& [block, log] : means) {
    blocks.push_back(block);
    logs.push_back(log);
  }
  drift.trend = stats::SpearmanTrend(logs);
  const double middle = stats::FindMedian(logs)->median;  // one wild block does not move it
  for (const auto& [block, log] : means) {
    if (std::abs(log - middle) > std::log1p(options.margin)) drift.restless.push_back(block);
  }
  drift.flagged = !drift.restless.empty();
  if (const auto line = stats::FitLine(blocks, logs, options.confidence)) {
    const double span = blocks.back() - blocks.front();
    drift.change = std::expm1(line->slope * span);
    if (line->low) drift.low = std::expm1(*line->low * span);
    if (line->high) drift.high = std::expm1(*line->high * span);
    const bool sure = drift.low && drift.high && (*drift.low > 0 || *drift.high < 0);
    drift.flagged = drift.flagged || (sure && std::abs(line->slope * span) > std::log1p(options.margin));
  }
  return drift;
}

}  // namespace weir::study
