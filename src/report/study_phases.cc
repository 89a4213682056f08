// Phases side by side: what each keeps of its rate beside the others, and under which limits.
#include <fmt/format.h>

#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string FigureOf(const std::string& metric) {
  if (metric == "response_ms.p99") return "p99 of the response time, ms";
  if (metric == "beside.feed.per_s") return "samples/s";
  return "images/s";
}

Table KeptTable(const StudyResult::Phases& phases) {
  Table table{.caption = "Each phase beside all others, over the same phase alone",
              .columns = {"the phase", "limits", "figure", "finding", "alone", "beside the others", "ratio"},
              .text_columns = 4};
  for (const StudyResult::PhaseKept& one : phases.kept)
    table.rows.push_back({one.phase, one.limits, FigureOf(one.metric), ToldText(one.tested),
                          Number(one.alone), Number(one.together), IntervalText(one.tested.ratio)});
  table.notes = {
      "The ratio is of the same blocks; the intervals of the table are simultaneous (Bonferroni), and a "
      "difference is shown where one of them leaves 1 out.",
      "Limits are cores that each phase may use at most."};
  return table;
}

std::string RecommendationOf(const StudyResult::Phases& phases) {
  if (phases.recommended.empty()) return fmt::format("There is no recommendation: {}.", phases.why_not);
  const std::string advice = phases.recommended == "none"
                                 ? "Set no limits: without them"
                                 : fmt::format("Set the limits {}: with them", phases.recommended);
  return fmt::format("{} the phase that loses most keeps {:.0f} % of its figure.", advice,
                     100 * phases.least_kept.value_or(0));
}

}  // namespace

Section PhasesSection(const StudyResult& study) {
  Section section{.title = "Phases side by side"};
  if (!study.phases) return section;
  section.blocks.emplace_back(Paragraph{RecommendationOf(*study.phases), Paragraph::Tone::kAnswer});
  section.blocks.emplace_back(KeptTable(*study.phases));
  return section;
}

}  // namespace weir::report
