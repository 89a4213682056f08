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
  const auto ratio = stats::UnpairedRatio(now, before, options.confidence);
  if (!ratio) return row;
  row["ratio"] = ratio->ratio;
  PutIfAny(row, "low", ratio->low);
  PutIfAny(row, "high", ratio->high);
  row["told"] = ToString(Tell(*ratio, options));
  return row;
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
  for (size_t i = 0; i < now.design.configurations.size(); ++i) {
    const Configuration& one = now.design.configurations[i];
    const auto found = left.find(DumpJson(one.factors));
    if (found == left.end()) {
      json["only_now"].push_back(one.label);
      continue;
    }
    json["configurations"].push_back(
        RowJson(one.label, then.Values(found->second, metric), here.Values(i, metric), now.options));
    left.erase(found);
  }
  for (const auto& [factors, index] : left)
    json["only_before"].push_back(before.design.configurations[index].label);
  return json;
}

}  // namespace weir::study
