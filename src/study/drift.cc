#include "study/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "stats/family.h"
#include "stats/median_interval.h"

namespace weir::study {
namespace {

constexpr double kRestless = 3.5;     // robust standard deviations
constexpr double kMadScale = 1.4826;  // makes the MAD of a normal distribution its standard deviation

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

// Returns the commonest reason among the last tries of a block's trials.
std::string EvidenceOf(std::span<const PlayedTrials> played, int block) {
  std::map<std::string, int64_t> counts;
  int64_t trials = 0;
  for (const PlayedTrials* one : LastTries(played)) {
    if (one->trial.block != block) continue;
    ++trials;
    for (const results::Cause& cause : one->record.verdict.causes)
      ++counts[std::string(ToString(cause.reason))];
  }
  if (counts.empty()) return "";
  const auto commonest = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  return fmt::format("{} in {} of {} trials", commonest->first, commonest->second, trials);
}

void FindRestless(const std::map<int, double>& means, std::span<const PlayedTrials> played,
                  const AnalysisOptions& options, StudyDrift& drift) {
  std::vector<double> logs, off;
  for (const auto& [block, log] : means) logs.push_back(log);
  const double middle = stats::FindMedian(logs)->median;  // one wild block does not move it
  for (const double log : logs) off.push_back(std::abs(log - middle));
  const double deviation = kMadScale * stats::FindMedian(off)->median;
  const double limit = std::max(std::log1p(options.margin), kRestless * deviation);
  for (const auto& [block, log] : means) {
    if (std::abs(log - middle) <= limit) continue;
    drift.restless.push_back(
        {.block = block, .ratio = std::exp(log - middle), .evidence = EvidenceOf(played, block)});
  }
}

}  // namespace

StudyDrift FindStudyDrift(const Measured& measured, std::span<const PlayedTrials> played,
                          const std::string& metric, const AnalysisOptions& options) {
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
  FindRestless(means, played, options, drift);
  if (const auto line = stats::FitLine(blocks, logs, options.confidence)) {
    const double span = blocks.back() - blocks.front();
    drift.change = std::expm1(line->slope * span);
    if (line->low && line->high) {
      drift.low = std::expm1(*line->low * span);
      drift.high = std::expm1(*line->high * span);
      const bool sure = *drift.low > 0 || *drift.high < 0;
      drift.shown = sure && std::abs(line->slope * span) > std::log1p(options.margin);
      if (!drift.shown) drift.limit = stats::DifferenceLimit(1 + *drift.low, 1 + *drift.high);
    }
  }
  drift.flagged = drift.shown || !drift.restless.empty();
  return drift;
}

}  // namespace weir::study
