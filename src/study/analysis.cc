#include "study/analysis.h"

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "study/factor.h"

namespace weir::study {
namespace {

using results::Standing;

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
    const results::Verdict& verdict = one->record.verdict;
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

// The figures that the report shows over the reference are one family, all others another.
void AdjustComparisons(const StudyFile& study, const AnalysisOptions& options, Analysis& analysis) {
  const std::vector<WantedMetric> wanted = WantedMetrics(study);
  std::vector<Tested*> shown, others;
  for (Comparison& one : analysis.comparisons) {
    const bool is_shown = std::ranges::find(wanted, one.metric, &WantedMetric::metric) != wanted.end();
    (is_shown ? shown : others).push_back(&one);
  }
  AdjustFamily(shown, options);
  AdjustFamily(others, options);
}

}  // namespace

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

Analysis Analyse(const StudyFile& study, const Design& design, std::span<const PlayedTrials> played,
                 const AnalysisOptions& options) {
  const Measured measured(design, played);
  Analysis analysis{.configurations = std::vector<ConfigurationResult>(design.configurations.size())};
  CountTrials(played, analysis);
  for (size_t i = 0; i < design.configurations.size(); ++i) {
    analysis.configurations[i].metrics = FiguresOf(measured, i, options.confidence);
    analysis.configurations[i].words = measured.Words(i);
    analysis.configurations[i].bottleneck = FindNextBottleneck(i, measured, options);
    if (i == design.reference || design.configurations[i].waterfall_only) continue;
    for (const std::string& metric : measured.metrics()) {
      if (auto comparison = Compare(measured, i, design.reference, metric, options))
        analysis.comparisons.push_back(std::move(*comparison));
    }
  }
  AdjustComparisons(study, options, analysis);
  const std::string& objective = study.objective.metric;
  analysis.variance = AnalyseObjective(design, measured, objective, options);
  analysis.effects =
      FindEffects(study, design, measured, analysis.variance.Significant(options.alpha), options);
  analysis.architectures = CompareArchitectures(study, design, measured, options);
  analysis.phases = ComparePhases(design, measured, options);
  analysis.outliers = FindOutlierTrials(design, measured, objective, analysis.outliers_left_out);
  analysis.waterfall = FindWaterfall(design, measured, options);
  analysis.drift = FindStudyDrift(measured, played, objective, options);
  std::vector<Tally> tallies;
  for (const ConfigurationResult& one : analysis.configurations) tallies.push_back(one.tally);
  analysis.answers = FindAnswers(study, design, measured, tallies, played, options);
  analysis.missing = FindMissing(WantedMetrics(study), measured.metrics());
  return analysis;
}

}  // namespace weir::study
