#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/json.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/text.h"
#include "report/unit.h"

namespace weir::report {

std::string AnswerText(const StudyResult& result, const std::string& folder) {
  const std::string& objective = result.study.metric;
  const Unit unit = UnitOf(objective);
  Table table{.columns = {"configuration", WithUnit(objective, unit.name), "n", "bottleneck"},
              .text_columns = 1};
  for (size_t i = 0; i < result.configurations.size(); ++i) {
    const results::Figures* figures = result.FindFigures(i, objective);
    const auto bottleneck = result.CommonestWord(i, "bottleneck");
    table.rows.push_back({result.label(i), IntervalText(figures, unit.scale),
                          figures == nullptr ? "-" : fmt::format("{}", figures->n),
                          bottleneck ? bottleneck->word : "-"});
  }
  return ToText(AnswerSection(result)) + "\n" + ToText({.title = {}, .blocks = {std::move(table)}}) +
         fmt::format(
             "\nThe report: {0}/report.html, report.md; every trial: "
             "{0}/results.csv; by configuration: {0}/summary.csv\n",
             EscapeBytes(folder));
}

}  // namespace weir::report
