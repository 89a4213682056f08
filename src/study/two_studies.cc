#include "study/two_studies.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "study/difference.h"

namespace weir::study {
namespace {

std::vector<std::string> FindDifferences(const StudyJournal& before, const StudyJournal& now) {
  std::vector<std::string> lines = ProvenanceDifferences(before.header.provenance, now.header.provenance);
  for (const auto& line : Differences(before.header.study, now.header.study))
    lines.push_back("study file: " + line);
  return lines;
}

std::map<std::string, size_t> ByFactors(const Design& design) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < design.configurations.size(); ++i)
    index[DumpJson(design.configurations[i].factors)] = i;
  return index;
}

// Returns nullopt without values.
std::optional<results::Figures> FiguresOf(const std::vector<double>& values, const AnalysisOptions& options) {
  const auto summary = stats::Summarise(values, options.confidence);
  const auto median = stats::FindMedian(values, options.confidence);
  return summary && median ? std::optional(ToFigures(*summary, *median)) : std::nullopt;
}

std::optional<Tested> TestUnpaired(const std::vector<double>& now, const std::vector<double>& before,
                                   const AnalysisOptions& options) {
  const auto ratio = stats::UnpairedRatio(now, before, options.confidence);
  if (!ratio) return std::nullopt;
  return Tested{.ratio = *ratio, .p = stats::RatioP(*ratio)};
}

// Adjusts the tests as one family. Each belongs to the configuration of its index.
void AddTests(std::vector<std::pair<size_t, Tested>>& tests, const AnalysisOptions& options,
              std::vector<results::StudyResult::ComparedConfiguration>& configurations) {
  std::vector<Tested*> family;
  for (auto& [index, tested] : tests) family.push_back(&tested);
  AdjustFamily(family, options);
  for (const auto& [index, tested] : tests) configurations[index].tested = ToTested(tested);
}

}  // namespace

results::StudyResult::Compared CompareStudies(const ResultInputs& before, const ResultInputs& now) {
  const std::string& metric = now.study.objective.metric;
  const Measured then(before.design, before.journal.played), here(now.design, now.journal.played);
  std::map<std::string, size_t> left = ByFactors(before.design);
  results::StudyResult::Compared compared{.metric = metric,
                                          .differences = FindDifferences(before.journal, now.journal)};
  std::vector<std::pair<size_t, Tested>> tests;
  for (size_t i = 0; i < now.design.configurations.size(); ++i) {
    const Configuration& one = now.design.configurations[i];
    const auto found = left.find(DumpJson(one.factors));
    if (found == left.end()) {
      compared.only_now.push_back(one.label);
      continue;
    }
    const std::vector<double> old_values = then.Values(found->second, metric);
    const std::vector<double> new_values = here.Values(i, metric);
    if (const auto tested = TestUnpaired(new_values, old_values, now.options))
      tests.emplace_back(compared.configurations.size(), *tested);
    compared.configurations.push_back({.label = one.label,
                                       .before = FiguresOf(old_values, now.options),
                                       .now = FiguresOf(new_values, now.options),
                                       .tested = {}});
    left.erase(found);
  }
  AddTests(tests, now.options, compared.configurations);
  for (const auto& [factors, index] : left)
    compared.only_before.push_back(before.design.configurations[index].label);
  return compared;
}

}  // namespace weir::study
