#include "report/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "report/number.h"
#include "report/unit.h"

namespace weir::report {
namespace {

Chart ToChart(const Json& figure, double confidence) {
  const bool lines = figure["kind"] == "lines";
  const Unit unit = UnitOf(figure["metric"].get<std::string>());
  Chart chart{.kind = lines ? Chart::Kind::kLines : Chart::Kind::kBars,
              .title = figure["title"].get<std::string>(),
              .x_label = FactorWords(figure.value("x", "")),
              .x_unit = figure.value("x", "") == "batch" ? "pictures" : "",
              .y_label = MetricWords(figure["metric"].get<std::string>()),
              .y_unit = unit.name,
              .note = fmt::format("Error bars: the {} interval of the mean (Student's t over the repeats), "
                                  "none below 0.",
                                  Percent(confidence))};
  for (const Json& one : figure["series"]) {
    Series series{.name = one["name"].get<std::string>()};
    for (const Json& point : one["points"]) {
      std::string note = Count(point["n"].get<int64_t>(), "trial");
      if (const auto suspect = point["suspect"].get<int64_t>(); suspect > 0)
        note += fmt::format(", {} SUSPECT", suspect);
      series.points.push_back({.x = NumberAt(point, "x"),
                               .name = point.value("name", ""),
                               .value = point["mean"].get<double>() * unit.scale,
                               .low = LowAt(point, "mean", unit.scale),
                               .high = NumberAt(point, "high", unit.scale),
                               .note = std::move(note)});
      for (const Json& trial : point.value("trials", Json::array()))
        series.points.back().dots.push_back(
            {.value = trial["value"].get<double>() * unit.scale, .suspect = trial["suspect"].get<bool>()});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string Subtitle(const StudyView& study) {
  const Json& trials = study.At("trials");
  return fmt::format(
      "{} in {}, {} planned; {} VALID, {} SUSPECT, {} INVALID, {} "
      "failed, {} skipped",
      Count(static_cast<int64_t>(study.configurations()), "configuration"),
      Count(study.At("blocks").get<int64_t>(), "randomised block"),
      Count(trials["planned"].get<int64_t>(), "trial"), trials["valid"].get<int64_t>(),
      trials["suspect"].get<int64_t>(), trials["invalid"].get<int64_t>(), trials["failed"].get<int64_t>(),
      trials["skipped"].get<int64_t>());
}

}  // namespace

std::string FactorWords(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

Section FiguresSection(const StudyView& study) {
  Section section{.title = "Figures"};
  for (const Json& figure : study.At("figures"))
    section.blocks.emplace_back(ToChart(figure, study.At("options")["confidence"].get<double>()));
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"Nothing to draw: no trial counts."});
  return section;
}

namespace {

void AddCharts(const StudyView& study, const char* key, Section& section) {
  for (const Json& figure : study.At(key))
    section.blocks.emplace_back(ToChart(figure, study.At("options")["confidence"].get<double>()));
}

}  // namespace

Section LatencySection(const StudyView& study) {
  Section section{.title = "Latency"};
  AddCharts(study, "latency_figures", section);
  Table table{.caption = "Response time in milliseconds, from the planned send to the last byte",
              .columns = {"configuration", "trials", "p50", "p90", "p99", "p99.9", "longest"}};
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& median = study.Metric(i, "response_ms.p50");
    if (median.is_null() || study.configuration(i).value("waterfall_only", false)) continue;
    std::vector<std::string> row{study.label(i), fmt::format("{}", median["n"].get<int64_t>())};
    for (const char* part : {"p50", "p90", "p99", "p99_9", "max"})
      row.push_back(IntervalText(study.Metric(i, fmt::format("response_ms.{}", part))));
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) {
    section.blocks.emplace_back(
        Paragraph{"No trial measured response times: they come with load: closed or a rate, or with a p99 "
                  "target of the study."});
    return section;
  }
  table.notes = {
      "Means over the trials with their intervals. A p99 needs 1,000 requests in a trial, a p99.9 "
      "10,000; where a trial had fewer it is absent."};
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section MemorySection(const StudyView& study) {
  Section section{.title = "Memory"};
  AddCharts(study, "memory_figures", section);
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"No trial measured memory."});
  return section;
}

Section StabilitySection(const StudyView& study) {
  Section section{.title = "Stability over the blocks"};
  AddCharts(study, "stability_figures", section);
  if (section.blocks.empty())
    section.blocks.emplace_back(Paragraph{"One block does not tell: ask for more repeats."});
  return section;
}

Document StudyDocument(const Json& result) {
  const StudyView study(result);
  const std::string question = result["study"].value("question", "");
  Document document{.title = question.empty() ? "Study " + study.name() : question,
                    .subtitle = Subtitle(study)};
  if (!question.empty()) document.subtitle = fmt::format("Study {}: {}", study.name(), document.subtitle);
  if (const Json& unnamed = study.At("unnamed"); unnamed.is_string())
    document.subtitle += ". Levels that a name leaves out: " + unnamed.get<std::string>();
  document.sections.push_back(AnswerSection(study));
  if (!study.At("compared").is_null()) document.sections.push_back(ComparedSection(study));
  for (const auto section : {FiguresSection, ConfigurationsSection, TimeSection, EffectsSection,
                             LatencySection, MemorySection, StabilitySection, Table2Section, DoubtfulSection,
                             CombinationsSection, ConditionsSection, RepeatSection})
    document.sections.push_back(section(study));
  return document;
}

}  // namespace weir::report
