// Where the time goes: the waterfall, and what holds each configuration back.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string StepText(const StudyResult::Milliseconds& step) {
  return WithInterval(step.mean_ms, step.low_ms, step.high_ms);
}

Chart WaterfallChart(const std::vector<StudyResult::WaterfallStep>& steps) {
  Chart chart{.kind = Chart::Kind::kBars,
              .title = "Time of a picture, from tensors in memory to the full architecture",
              .y_label = "time of a picture",
              .y_unit = "ms",
              .note = "Each bar is what one step adds; the error bars are the intervals of the steps."};
  Series series;
  double before = 0;
  for (const StudyResult::WaterfallStep& one : steps) {
    Point point{.name = one.name, .value = one.total_ms};
    point.from = before;
    if (one.step.low_ms && one.step.high_ms) {
      point.low = before + *one.step.low_ms;
      point.high = before + *one.step.high_ms;
    }
    point.note = one.change;
    series.points.push_back(std::move(point));
    before = one.total_ms;
  }
  chart.series.push_back(std::move(series));
  return chart;
}

Table WaterfallTable(const StudyResult::Waterfall& waterfall) {
  Table table{.caption = "Steps in their order; milliseconds for a picture",
              .columns = {"step", "change", "finding", "adds", "up to here", "adjusted p"},
              .text_columns = 3};
  bool first = true;
  for (const StudyResult::WaterfallStep& one : *waterfall.steps) {
    table.rows.push_back({one.name, one.change.empty() ? "-" : one.change,
                          one.by_events || first                  ? "-"
                          : !one.step.low_ms || !one.step.high_ms ? results::TestedRatio::kTooFew
                          : *one.step.low_ms > 0                  ? "adds time"
                          : *one.step.high_ms < 0                 ? "saves time"
                                                                  : results::TestedRatio::kNothing,
                          StepText(one.step), one.whole ? StepText(*one.whole) : Number(one.total_ms),
                          one.by_events || first ? "-" : Number(one.adjusted_p)});
    first = one.by_events;
  }
  const bool is_split = waterfall.steps->front().by_events;
  table.rows.push_back({is_split ? "the whole, without the model" : "the whole, without the first", "-", "-",
                        waterfall.added ? StepText(*waterfall.added) : "-", "-", "-"});
  table.notes = {
      "Each step changes one factor and is compared with the step before it in the same blocks, so the steps "
      "sum to the whole. An interaction of two factors belongs to the later step. The time of a picture is 1 "
      "over the throughput: with overlap or batches, several pictures share it.",
      "The intervals of what the steps add, and of their sum, are simultaneous (Bonferroni); the p-values "
      "say "
      "the same. The time up to a step has an interval of its own."};
  if (is_split)
    table.notes.push_back("The first steps are parts of the model's time, by the events of its device.");
  if (waterfall.missing && !waterfall.missing->empty()) {
    std::string names;
    for (const std::string& name : *waterfall.missing) names += (names.empty() ? "" : ", ") + name;
    table.notes.push_back("Steps without a trial that counts are parts of the next one: " + names + ".");
  }
  return table;
}

Table BottleneckTable(const StudyResult& study) {
  Table table{.caption = "The bottleneck of each configuration, and the next one behind it",
              .columns = {"configuration", "bottleneck", "next", "trials", "bound", "measured", "next bound",
                          "gain before the next"},
              .text_columns = 3};
  const auto number = [](const std::optional<double>& value) { return value ? Number(*value) : "-"; };
  std::vector<std::string> contradictions;
  for (const StudyResult::Configuration& one : study.configurations) {
    if (!one.bottleneck || one.design.waterfall_only) continue;
    const StudyResult::Bottleneck& found = *one.bottleneck;
    table.rows.push_back({one.design.label, FactorWords(found.stage),
                          found.next.empty() ? "-" : FactorWords(found.next),
                          fmt::format("{} of {}", found.times, found.of), number(found.bound),
                          IntervalText(study.FindFigures(one.index, "throughput_images_per_s")),
                          number(found.next_bound), found.gain ? IntervalText(*found.gain) : "unknown"});
    if (!found.contradiction.empty())
      contradictions.push_back(fmt::format("{}: the bounds contradict the bottleneck: {}.", one.design.label,
                                           found.contradiction));
  }
  table.notes = {
      "Images/s. A bound is the rate at which the part holds back, from its own measured times. The gain is "
      "how many times the rate the relief of the bottleneck gives at most: until the next part holds back, "
      "or in sync mode until its time is gone. It is unknown where some part's own times are not known."};
  std::ranges::move(contradictions, std::back_inserter(table.notes));
  return table;
}

}  // namespace

Section TimeSection(const StudyResult& study) {
  Section section{.title = "Where the time goes"};
  if (study.waterfall && study.waterfall->steps) {
    section.blocks.emplace_back(WaterfallChart(*study.waterfall->steps));
    section.blocks.emplace_back(WaterfallTable(*study.waterfall));
  } else if (study.waterfall) {
    section.blocks.emplace_back(Paragraph{
        fmt::format("There is no waterfall: {}.", study.waterfall->left_out), Paragraph::Tone::kWarning});
  } else {
    section.blocks.emplace_back(Paragraph{
        "The study asked for no waterfall: weir study --waterfall, or waterfall: true, plays its steps."});
  }
  if (Table bottlenecks = BottleneckTable(study); !bottlenecks.rows.empty())
    section.blocks.emplace_back(std::move(bottlenecks));
  return section;
}

}  // namespace weir::report
