#include "report/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/count.h"
#include "report/number.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string XUnitOf(const std::string& x) {
  if (x == "batch") return "pictures";
  return x == results::ChartData::kResponseTime ? "ms" : "";
}

std::string NoteOf(const results::ChartData& figure, double confidence) {
  if (figure.metric == results::ChartData::kRequestsPercent)
    return "The requests of all trials together, up to 99 %. A time is known within 2.2 %.";
  return fmt::format("Error bars: the {} interval of the mean (Student's t over the repeats), none below 0.",
                     Percent(confidence));
}

Chart ToChart(const results::ChartData& figure, double confidence) {
  const Unit unit = UnitOf(figure.metric);
  Chart chart{.kind = figure.x.empty() ? Chart::Kind::kBars : Chart::Kind::kLines,
              .title = figure.title,
              .x_label = FactorWords(figure.x),
              .x_unit = XUnitOf(figure.x),
              .y_label = MetricWords(figure.metric),
              .y_unit = unit.name,
              .note = NoteOf(figure, confidence)};
  const auto scaled = [&unit](const std::optional<double>& value) {
    return value ? std::optional(*value * unit.scale) : std::nullopt;
  };
  for (const results::ChartData::Series& one : figure.series) {
    Series series{.name = one.name};
    for (const results::ChartData::Point& point : one.points) {
      std::string note = Count(point.n, "trial");
      if (point.suspect > 0) note += fmt::format(", {} SUSPECT", point.suspect);
      series.points.push_back({.x = point.x,
                               .name = point.name,
                               .value = point.mean * unit.scale,
                               .low = scaled(LowAt(point.low, point.mean)),
                               .high = scaled(point.high),
                               .note = std::move(note)});
      for (const results::ChartData::Trial& trial : point.trials)
        series.points.back().dots.push_back({.value = trial.value * unit.scale, .suspect = trial.suspect});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

void AddCharts(const std::vector<results::ChartData>& charts, const StudyResult& study, Section& section) {
  for (const results::ChartData& chart : charts)
    section.blocks.emplace_back(ToChart(chart, study.options.confidence));
}

std::string Subtitle(const StudyResult& study) {
  const results::TrialCounts& trials = study.trials;
  return fmt::format(
      "{} in {}, {} planned; {} VALID, {} SUSPECT, {} INVALID, {} "
      "failed, {} skipped",
      Count(std::ssize(study.configurations), "configuration"), Count(study.blocks, "randomised block"),
      Count(trials.planned.value_or(0), "trial"), trials.valid, trials.suspect, trials.invalid, trials.failed,
      trials.skipped);
}

// Where the slowest requests lose their time, beside all requests of the same trials.
Table SlowestTable(const StudyResult& study) {
  Table table{.caption = "The slowest requests: where their time goes, in milliseconds",
              .columns = {"configuration", "requests", "mean", "late start", "sending", "network and waiting",
                          "server: queue", "server: model", "server: rest", "receiving"},
              .text_columns = 2};
  constexpr const char* kParts[] = {"slip",          "client_send", "wire_and_wait", "queue",
                                    "compute_infer", "server_rest", "client_receive"};
  const auto number = [](const results::Figures* found) {
    return found == nullptr ? "-" : Number(found->mean);
  };
  for (size_t i = 0; i < study.configurations.size(); ++i) {
    const results::Figures* above = study.FindFigures(i, "slowest.above_percentile");
    if (above == nullptr || study.configurations[i].design.waterfall_only) continue;
    for (const bool slowest : {true, false}) {
      const std::string from = slowest ? "slowest.split_ms." : "split_ms.";
      std::vector<std::string> row{
          study.label(i), slowest ? fmt::format("above p{}", Number(above->mean)) : "all",
          number(study.FindFigures(i, slowest ? "slowest.mean_ms" : "response_ms.mean"))};
      for (const char* part : kParts) row.push_back(number(study.FindFigures(i, from + part)));
      table.rows.push_back(std::move(row));
    }
  }
  table.notes = {"Means over the trials. The server's own account has the queue, the model and the rest."};
  return table;
}

}  // namespace

std::string FactorWords(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

Section FiguresSection(const StudyResult& study) {
  Section section{.title = "Figures"};
  AddCharts(study.figures, study, section);
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"Nothing to draw: no trial counts."});
  return section;
}

Section LatencySection(const StudyResult& study) {
  Section section{.title = "Latency"};
  AddCharts(study.latency_figures, study, section);
  Table table{.caption = "Response time in milliseconds, from the planned send to the last byte",
              .columns = {"configuration", "trials", "p50", "p90", "p99", "p99.9", "longest"}};
  for (size_t i = 0; i < study.configurations.size(); ++i) {
    const results::Figures* median = study.FindFigures(i, "response_ms.p50");
    if (median == nullptr || study.configurations[i].design.waterfall_only) continue;
    std::vector<std::string> row{study.label(i), fmt::format("{}", median->n)};
    for (const char* part : {"p50", "p90", "p99", "p99_9", "max"})
      row.push_back(IntervalText(study.FindFigures(i, fmt::format("response_ms.{}", part))));
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
  if (Table slowest = SlowestTable(study); !slowest.rows.empty())
    section.blocks.emplace_back(std::move(slowest));
  return section;
}

Section MemorySection(const StudyResult& study) {
  Section section{.title = "Memory"};
  AddCharts(study.memory_figures, study, section);
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"No trial measured memory."});
  return section;
}

Section StabilitySection(const StudyResult& study) {
  Section section{.title = "Stability over the blocks"};
  AddCharts(study.stability_figures, study, section);
  if (section.blocks.empty())
    section.blocks.emplace_back(Paragraph{"One block does not tell: ask for more repeats."});
  return section;
}

Document StudyDocument(const StudyResult& study) {
  const std::string& name = study.study.name;
  const std::string& question = study.study.question;
  Document document{.title = question.empty() ? "Study " + name : question, .subtitle = Subtitle(study)};
  if (!question.empty()) document.subtitle = fmt::format("Study {}: {}", name, document.subtitle);
  if (!study.unnamed.empty()) document.subtitle += ". Levels that a name leaves out: " + study.unnamed;
  document.sections.push_back(AnswerSection(study));
  if (study.compared) document.sections.push_back(ComparedSection(study));
  if (study.phases) document.sections.push_back(PhasesSection(study));
  for (const auto section : {FiguresSection, ConfigurationsSection, TimeSection, EffectsSection,
                             LatencySection, MemorySection, StabilitySection, Table2Section, DoubtfulSection,
                             CombinationsSection, ConditionsSection, RepeatSection})
    document.sections.push_back(section(study));
  return document;
}

}  // namespace weir::report
