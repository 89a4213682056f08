#include "study/two_studies.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "study/difference.h"

namespace weir::study {
namespace {

Json DifferencesJson(const StudyJournal& before, const StudyJournal& now) {
  Json lines = Json::array();
  for (const auto& line : ProvenanceDifferences(before.header.provenance, now.header.provenance))
    lines.push_back(line);
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

// Absent figures where one side has none that counts.
Json RowJson(const std::string& label, const std::vector<double>& before, const std::vector<double>& now,
             const AnalysisOptions& options) {
  Json row{{"label", label}};
  for (const auto& [key, values] : {std::pair{"before", &before}, {"now", &now}}) {
    const auto summary = stats::Summarise(*values, options.confidence);
    const auto median = stats::FindMedian(*values, options.confidence);
    if (summary && median) row[key] = ToJson(Figures{.summary = *summary, .median = *median});
  }
  return row;
}

// Returns the p-value of equal means: 1 less the confidence at which Welch's interval just touches 1.
double UnpairedP(const std::vector<double>& now, const std::vector<double>& before) {
  double excludes = 0, holds = 1;  // confidences between which it begins to hold 1
  for (int i = 0; i < 60; ++i) {
    const double middle = (excludes + holds) / 2;
    if (middle <= 0 || middle >= 1) break;
    const auto ratio = stats::UnpairedRatio(now, before, middle);
    if (!ratio || !ratio->low || !ratio->high) return 1;
    (*ratio->low > 1 || *ratio->high < 1 ? excludes : holds) = middle;
  }
  return 1 - excludes;
}

std::optional<Tested> TestUnpaired(const std::vector<double>& now, const std::vector<double>& before,
                                   const AnalysisOptions& options) {
  const auto ratio = stats::UnpairedRatio(now, before, options.confidence);
  if (!ratio) return std::nullopt;
  Tested tested{.ratio = *ratio};
  if (ratio->low && ratio->high) tested.p = UnpairedP(now, before);
  return tested;
}

void AddTests(std::vector<std::pair<size_t, Tested>>& tests, const AnalysisOptions& options, Json& rows) {
  std::vector<Tested*> family;
  for (auto& [row, tested] : tests) family.push_back(&tested);
  AdjustFamily(family, options);
  for (const auto& [row, tested] : tests) {
    Json& json = rows[row];
    json["ratio"] = tested.ratio.ratio;
    PutIfAny(json, "low", tested.ratio.low);
    PutIfAny(json, "high", tested.ratio.high);
    json["p"] = tested.p;
    json["adjusted_p"] = tested.adjusted_p;
    json["told"] = ToString(tested.told);
    PutIfAny(json, "limit", tested.limit);
  }
}

}  // namespace

Json CompareStudies(const ResultInputs& before, const ResultInputs& now) {
  const std::string& metric = now.study.objective.metric;
  const Measured then(before.design, before.journal.played), here(now.design, now.journal.played);
  std::map<std::string, size_t> left = ByFactors(before.design);
  Json json{{"metric", metric},
            {"differences", DifferencesJson(before.journal, now.journal)},
            {"configurations", Json::array()},
            {"only_before", Json::array()},
            {"only_now", Json::array()}};
  std::vector<std::pair<size_t, Tested>> tests;  // rows, all in one family
  for (size_t i = 0; i < now.design.configurations.size(); ++i) {
    const Configuration& one = now.design.configurations[i];
    const auto found = left.find(DumpJson(one.factors));
    if (found == left.end()) {
      json["only_now"].push_back(one.label);
      continue;
    }
    const std::vector<double> old_values = then.Values(found->second, metric);
    const std::vector<double> new_values = here.Values(i, metric);
    if (const auto tested = TestUnpaired(new_values, old_values, now.options))
      tests.emplace_back(json["configurations"].size(), *tested);
    json["configurations"].push_back(RowJson(one.label, old_values, new_values, now.options));
    left.erase(found);
  }
  AddTests(tests, now.options, json["configurations"]);
  for (const auto& [factors, index] : left)
    json["only_before"].push_back(before.design.configurations[index].label);
  return json;
}

}  // namespace weir::study
