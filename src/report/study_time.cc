// Where the time goes: the waterfall, and what holds each configuration back.
#include <fmt/format.h>

#include <utility>

#include "report/number.h"
#include "report/study_report.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string StepText(const Json& step) {
  const auto mean = NumberAt(step, "mean_ms");
  return mean ? WithInterval(*mean, NumberAt(step, "low_ms"), NumberAt(step, "high_ms")) : "-";
}

Chart WaterfallChart(const Json& steps) {
  Chart chart{.kind = Chart::Kind::kBars,
              .title = "Time of a picture, from tensors in memory to the full architecture",
              .y_label = "time of a picture",
              .y_unit = "ms",
              .note = "Each bar is what one step adds; the error bars are the intervals of the steps."};
  Series series;
  double before = 0;
  for (const Json& step : steps) {
    const double total = step["total_ms"].get<double>();
    Point point{.name = step["name"].get<std::string>(), .value = total};
    point.from = before;
    const auto low = NumberAt(step, "low_ms"), high = NumberAt(step, "high_ms");
    if (low && high) {
      point.low = before + *low;
      point.high = before + *high;
    }
    point.note = step.value("change", "");
    series.points.push_back(std::move(point));
    before = total;
  }
  chart.series.push_back(std::move(series));
  return chart;
}

Table WaterfallTable(const StudyView& study, const Json& waterfall) {
  Table table{.caption = "Steps in their order; milliseconds for a picture",
              .columns = {"step", "change", "finding", "adds", "up to here", "adjusted p"},
              .text_columns = 3};
  const double alpha = study.At("options")["alpha"].get<double>();
  bool first = true;
  for (const Json& step : waterfall["steps"]) {
    const double mean = NumberAt(step, "mean_ms").value_or(0);
    const bool shown = step["adjusted_p"].get<double>() <= alpha;
    const std::string change = step.value("change", "");
    table.rows.push_back({step["name"].get<std::string>(), change.empty() ? "-" : change,
                          first      ? "-"
                          : !shown   ? "no difference shown"
                          : mean > 0 ? "adds time"
                                     : "saves time",
                          StepText(step), Number(step["total_ms"].get<double>()),
                          first ? "-" : Number(step["adjusted_p"].get<double>())});
    first = false;
  }
  table.rows.push_back({"the whole, without the first", "-", "-", StepText(waterfall["added"]), "-", "-"});
  table.notes = {
      "Each step changes one factor and is compared with the step before it in the same blocks, so the steps "
      "sum to the whole. An interaction of two factors belongs to the later step. The time of a picture is 1 "
      "over the throughput: with overlap or batches, several pictures share it.",
      "The p-values are adjusted by Holm's method over the steps."};
  if (const Json missing = waterfall.value("missing", Json::array()); !missing.empty()) {
    std::string names;
    for (const Json& one : missing) names += (names.empty() ? "" : ", ") + one.get<std::string>();
    table.notes.push_back("Steps without a trial that counts are parts of the next one: " + names + ".");
  }
  return table;
}

Table BottleneckTable(const StudyView& study) {
  Table table{.caption = "The bottleneck of each configuration, and the next one behind it",
              .columns = {"configuration", "bottleneck", "next", "trials", "bound", "measured", "next bound",
                          "gain before the next"},
              .text_columns = 3};
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& one = study.configuration(i);
    const auto found = one.find("bottleneck");
    if (found == one.end() || one.value("waterfall_only", false)) continue;
    const auto number = [&](const char* key) {
      const auto value = NumberAt(*found, key);
      return value ? Number(*value) : std::string("-");
    };
    table.rows.push_back(
        {study.label(i), (*found)["stage"].get<std::string>(), found->value("next", "-"),
         fmt::format("{} of {}", (*found)["times"].get<int64_t>(), (*found)["of"].get<int64_t>()),
         number("bound_images_per_s"), IntervalText(study.Metric(i, "throughput_images_per_s")),
         number("next_bound_images_per_s"),
         found->contains("gain") ? IntervalText((*found)["gain"], "ratio") : "-"});
  }
  table.notes = {
      "Images/s. A bound is the rate that the part would reach alone, from its measured time. The gain is "
      "how "
      "many times the rate the relief of the bottleneck gives at most: until the next part holds back, or in "
      "sync mode until its time is gone."};
  return table;
}

}  // namespace

Section TimeSection(const StudyView& study) {
  Section section{.title = "Where the time goes"};
  const Json& waterfall = study.At("waterfall");
  if (waterfall.is_object() && waterfall.contains("steps")) {
    section.blocks.emplace_back(WaterfallChart(waterfall["steps"]));
    section.blocks.emplace_back(WaterfallTable(study, waterfall));
  } else if (waterfall.is_object()) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("There is no waterfall: {}.", waterfall.value("left_out", "")),
                  Paragraph::Tone::kWarning});
  } else {
    section.blocks.emplace_back(Paragraph{
        "The study asked for no waterfall: weir study --waterfall, or waterfall: true, plays its steps."});
  }
  if (Table bottlenecks = BottleneckTable(study); !bottlenecks.rows.empty())
    section.blocks.emplace_back(std::move(bottlenecks));
  return section;
}

}  // namespace weir::report
