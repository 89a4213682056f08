#include "study/analysis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/nearest.h"
#include "study/factor.h"

namespace weir::study {
namespace {

using record::Standing;

void Count(Standing standing, Tally& tally) {
  switch (standing) {
    case Standing::kValid:
      ++tally.valid;
      return;
    case Standing::kSuspect:
      ++tally.suspect;
      return;
    case Standing::kInvalid:
      ++tally.invalid;
      return;
    case Standing::kFailed:
      ++tally.failed;
      return;
    case Standing::kSkipped:
      ++tally.skipped;
      return;
  }
}

void CountTrials(std::span<const PlayedTrials> played, Analysis& analysis) {
  for (const PlayedTrials& one : played) analysis.retried += one.attempt > 1;
  for (const PlayedTrials* one : LastTries(played)) {
    const record::Verdict& verdict = one->record.verdict;
    Count(verdict.standing, analysis.tally);
    if (one->trial.is_reference() || one->trial.configuration >= analysis.configurations.size()) continue;
    ConfigurationResult& result = analysis.configurations[one->trial.configuration];
    Count(verdict.standing, result.tally);
    if (verdict.standing == Standing::kSkipped && result.skipped_why.empty())
      result.skipped_why = verdict.message;
  }
}

std::vector<Figures> FiguresOf(const Measured& measured, size_t configuration, double confidence) {
  std::vector<Figures> all;
  for (const std::string& metric : measured.metrics()) {
    const std::vector<double> values = measured.Values(configuration, metric);
    const auto summary = stats::Summarise(values, confidence);
    const auto median = stats::FindMedian(values, confidence);
    if (summary && median) all.push_back({.metric = metric, .summary = *summary, .median = *median});
  }
  return all;
}

// From the best on, as the objective wants it; equal means keep the order of the design. One without a VALID
// trial is no headline where another has some: it comes behind those.
std::optional<Answer> FindAnswer(const Objective& objective, const Analysis& analysis,
                                 const Measured& measured, const AnalysisOptions& options) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < analysis.configurations.size(); ++i) {
    if (const Figures* found = FindFigures(analysis.configurations[i], objective.metric))
      order.emplace_back(found->summary.mean, i);
  }
  if (order.empty()) return std::nullopt;
  const auto has_valid = [&](const auto& one) { return analysis.configurations[one.second].tally.valid > 0; };
  const bool any_valid = std::ranges::any_of(order, has_valid);
  const bool higher = objective.better == Better::kHigher;
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    if (any_valid && has_valid(a) != has_valid(b)) return has_valid(a);
    return higher ? a.first > b.first : a.first < b.first;
  });
  Answer answer{.best = order[0].second, .mean = order[0].first};
  for (size_t i = 1; i < order.size(); ++i) {
    if (auto other = Compare(measured, order[i].second, answer.best, objective.metric, options))
      answer.others.push_back(std::move(*other));
  }
  return answer;
}

}  // namespace

std::string_view ToString(Told told) {
  switch (told) {
    case Told::kHigher:
      return "higher";
    case Told::kLower:
      return "lower";
    case Told::kSmall:
      return "small difference";
    case Told::kNothing:
      return "no difference shown";
    case Told::kTooFew:
      return "too few";
  }
  return "";
}

const Figures* FindFigures(const ConfigurationResult& result, std::string_view metric) {
  const auto found = std::ranges::find(result.metrics, metric, &Figures::metric);
  return found == result.metrics.end() ? nullptr : &*found;
}

std::vector<WantedMetric> WantedMetrics(const StudyFile& study) {
  std::vector<WantedMetric> wanted{{.metric = study.objective.metric, .wanted_by = "objective", .where = {}}};
  for (const Figure& figure : study.figures) {
    if (!figure.metric.empty())
      wanted.push_back(
          {.metric = figure.metric, .wanted_by = "figure " + figure.title, .where = figure.where});
  }
  return wanted;
}

std::vector<MissingMetric> FindMissing(std::span<const WantedMetric> wanted,
                                       const std::vector<std::string>& metrics) {
  std::vector<MissingMetric> missing;
  const std::vector<std::string_view> known(metrics.begin(), metrics.end());
  if (known.empty()) return missing;
  for (const WantedMetric& one : wanted) {
    if (std::ranges::find(known, one.metric) == known.end())
      missing.push_back(
          {.metric = one.metric, .wanted_by = one.wanted_by, .nearest = Nearest(one.metric, known)});
  }
  return missing;
}

Told Tell(const stats::Ratio& ratio, const AnalysisOptions& options) {
  if (!ratio.low || !ratio.high) return Told::kTooFew;
  if (*ratio.low <= 1 && *ratio.high >= 1) return Told::kNothing;
  if (ratio.ratio > 1 + options.margin) return Told::kHigher;
  if (ratio.ratio < 1 / (1 + options.margin)) return Told::kLower;
  return Told::kSmall;
}

std::optional<Comparison> Compare(const Measured& measured, size_t configuration, size_t against,
                                  const std::string& metric, const AnalysisOptions& options) {
  const std::map<int, double> values = measured.ByBlock(configuration, metric);
  const std::map<int, double> references = measured.ByBlock(against, metric);
  std::vector<double> over, under;
  for (const auto& [block, value] : values) {
    const auto reference = references.find(block);
    if (reference == references.end()) continue;
    over.push_back(value);
    under.push_back(reference->second);
  }
  const auto ratio = stats::PairedRatio(over, under, options.confidence);
  if (!ratio) return std::nullopt;
  Comparison comparison{.configuration = configuration,
                        .against = against,
                        .metric = metric,
                        .ratio = *ratio,
                        .told = Tell(*ratio, options)};
  if (ratio->log_deviation) {
    const auto smallest =
        stats::SmallestDifference(*ratio->log_deviation, ratio->n, options.alpha, options.power);
    if (smallest) comparison.smallest_difference = std::expm1(*smallest);
  }
  return comparison;
}

Analysis Analyse(const StudyFile& study, const Design& design, std::span<const PlayedTrials> played,
                 const AnalysisOptions& options) {
  const Measured measured(design, played);
  Analysis analysis{.configurations = std::vector<ConfigurationResult>(design.configurations.size())};
  CountTrials(played, analysis);
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    analysis.configurations[i].metrics = FiguresOf(measured, i, options.confidence);
    analysis.configurations[i].words = measured.Words(i);
    if (i == design.reference) continue;
    for (const std::string& metric : measured.metrics()) {
      if (auto comparison = Compare(measured, i, design.reference, metric, options))
        analysis.comparisons.push_back(std::move(*comparison));
    }
  }
  analysis.effects = FindEffects(study, design, measured, options);
  analysis.drift = FindStudyDrift(measured, study.objective.metric, options);
  analysis.answer = FindAnswer(study.objective, analysis, measured, options);
  analysis.missing = FindMissing(WantedMetrics(study), measured.metrics());
  return analysis;
}

}  // namespace weir::study
