#include "report/fit_report.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/count.h"
#include "report/number.h"

namespace weir::report {
namespace {

constexpr size_t kMostBars = 30;
constexpr size_t kMostTold = 200;  // findings

double NumberOf(const Json& object, const char* key) { return object[key].get<double>(); }
std::string Percents(const Json& object, const char* key) {
  return fmt::format("{:.1f}", NumberOf(object, key));
}
std::string Text(const Json& object, const char* key) { return object[key].get<std::string>(); }
std::string Whole(const Json& object, const char* key) {
  return Number(static_cast<double>(object[key].get<int64_t>()));
}

std::string QuestionName(const Json& question) {
  static const std::map<std::string, std::string> names = {{"inside", "inside the data"},
                                                           {"count", "more devices than were measured"},
                                                           {"hardware", "hardware that was never measured"},
                                                           {"network", "a network that was never measured"}};
  const auto found = names.find(Text(question, "question"));
  return found == names.end() ? Text(question, "question") : found->second;
}

Section AnswerSection(const Json& fit) {
  Section section{.title = "How far off are its predictions?"};
  Table table{.caption = "Error of predicted times of rows that were left out of the fit",
              .columns = {"Asked", "mean %", "median %", "90 % of rows below %", "rows", "intervals hold %",
                          "half-width of intervals %"}};
  for (const Json& question : fit["questions"]) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("{}: {} % off in the mean, {} % in the median.", QuestionName(question),
                              Percents(question, "mean_percent"), Percents(question, "median_percent")),
                  Paragraph::Tone::kAnswer});
    table.rows.push_back({QuestionName(question), Percents(question, "mean_percent"),
                          Percents(question, "median_percent"), Percents(question, "p90_percent"),
                          Whole(question, "rows"), Percents(question, "interval_coverage_percent"),
                          Percents(question, "interval_half_width_percent")});
  }
  if (fit["questions"].empty()) {
    section.blocks.emplace_back(
        Paragraph{"The rows could rehearse no question: nothing is known of how far off the predictions are.",
                  Paragraph::Tone::kWarning});
    return section;
  }
  table.notes.emplace_back(
      "Hardware, networks and counts are left out whole. The weights of the mixture were chosen on the same "
      "rows; the learning curve's were not.");
  section.blocks.emplace_back(std::move(table));
  return section;
}

Chart ProfileChart(const Json& fit) {
  Chart chart{
      .kind = Chart::Kind::kLines,
      .title = "Predicted against measured",
      .x_label = "measured time, ms",
      .y_label = "predicted / measured",
      .series = {},
      .note = "1 is right. Each point is the median of rows of like time; its bar holds 90 % of them."};
  for (const Json& question : fit["questions"]) {
    if (!question.contains("profile") || question["profile"].empty()) continue;
    Series series{.name = QuestionName(question), .points = {}};
    for (const Json& point : question["profile"]) {
      series.points.push_back({.x = NumberOf(point, "measured_ms"),
                               .name = {},
                               .value = NumberOf(point, "predicted_over_measured"),
                               .low = NumberOf(point, "low"),
                               .high = NumberOf(point, "high"),
                               .note = Count(point["rows"].get<int64_t>(), "row")});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart LearningChart(const Json& curve) {
  Chart chart{.kind = Chart::Kind::kLines,
              .title = "What more rows would bring",
              .x_label = "rows of the fit",
              .y_label = "error of rows that no fit saw, %",
              .series = {{.name = "mean", .points = {}}, {.name = "median", .points = {}}},
              .note =
                  "A curve that still falls says: measure more. The fits chose their mixture without the "
                  "rows that are predicted."};
  for (const Json& point : curve) {
    const std::string note =
        fmt::format("{} % answered, intervals hold {} %", Percents(point, "answered_percent"),
                    Percents(point, "interval_coverage_percent"));
    const auto add = [&](Series& series, const char* key) {
      series.points.push_back({.x = NumberOf(point, "fitted"),
                               .name = {},
                               .value = NumberOf(point, key),
                               .low = {},
                               .high = {},
                               .note = note});
    };
    add(chart.series[0], "mean_percent");
    add(chart.series[1], "median_percent");
  }
  return chart;
}

Section ChartsSection(const Json& fit) {
  Section section{.title = "Predicted against measured"};
  if (Chart profile = ProfileChart(fit); !profile.series.empty())
    section.blocks.emplace_back(std::move(profile));
  if (fit.contains("learning_curve") && !fit["learning_curve"].empty())
    section.blocks.emplace_back(LearningChart(fit["learning_curve"]));
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"Too few rows were left out to draw."});
  return section;
}

Table GroupTable(const Json& groups, std::string caption, const char* what) {
  Table table{.caption = std::move(caption), .columns = {what, "mean %", "median %", "90 % below %", "rows"}};
  for (const Json& group : groups)
    table.rows.push_back({Text(group, "group"), Percents(group, "mean_percent"),
                          Percents(group, "median_percent"), Percents(group, "p90_percent"),
                          Whole(group, "rows")});
  return table;
}

void AddGroups(const Json& question, const char* key, const char* what, Section& section) {
  if (!question.contains(key) || question[key].size() < 2) return;
  const Json& groups = question[key];
  const std::string title = fmt::format("Mean error by {}, {}", what, QuestionName(question));
  if (groups.size() > kMostBars) {  // bars of hundreds of networks are no picture
    section.blocks.emplace_back(GroupTable(groups, title, what));
    return;
  }
  Chart chart{.kind = Chart::Kind::kBars,
              .title = title,
              .x_label = {},
              .y_label = "mean error, %",
              .series = {},
              .note = {}};
  Series& series = chart.series.emplace_back();
  for (const Json& group : groups)
    series.points.push_back({.x = {},
                             .name = Text(group, "group"),
                             .value = NumberOf(group, "mean_percent"),
                             .low = {},
                             .high = {},
                             .note = Count(group["rows"].get<int64_t>(), "row")});
  section.blocks.emplace_back(std::move(chart));
}

Section GroupsSection(const Json& fit) {
  Section section{.title = "Error by group"};
  for (const Json& question : fit["questions"]) {
    AddGroups(question, "by_hardware", "hardware", section);
    AddGroups(question, "by_network", "network", section);
    AddGroups(question, "by_devices", "devices", section);
  }
  if (section.blocks.empty())
    section.blocks.emplace_back(Paragraph{"The rows have no groups to tell apart."});
  return section;
}

Section CandidatesSection(const Json& fit) {
  Section section{.title = "Every candidate"};
  for (const Json& question : fit["questions"]) {
    Table table{.caption = QuestionName(question),
                .columns = {"candidate", "mean %", "median %", "90 % below %", "rows", "weight"}};
    const auto row = [&](std::string name, const Json& scores, std::string weight) {
      table.rows.push_back({std::move(name), Percents(scores, "mean_percent"),
                            Percents(scores, "median_percent"), Percents(scores, "p90_percent"),
                            Whole(scores, "rows"), std::move(weight)});
    };
    row(Text(fit, "estimator"), question, "");
    for (const Json& candidate : question["candidates"]) {
      const double weight = NumberOf(candidate, "weight");
      row(Text(candidate, "candidate"), candidate, weight > 0 ? fmt::format("{:.2f}", weight) : "");
    }
    section.blocks.emplace_back(std::move(table));
  }
  section.blocks.emplace_back(
      Paragraph{"The first line is the mixture of those with a weight. lr-sfs is linear regression with "
                "sequential forward "
                "selection; it is rehearsed to be compared with, and no part of auto."});
  return section;
}

Section WorstSection(const Json& fit) {
  Section section{.title = "The worst rows", .blocks = {}, .folded = true};
  for (const Json& question : fit["questions"]) {
    if (!question.contains("worst")) continue;
    Table table{.caption = QuestionName(question),
                .columns = {"row", "hardware", "network", "devices", "measured ms", "predicted ms", "times"},
                .rows = {},
                .text_columns = 3};
    for (const Json& row : question["worst"]) {
      const double measured = NumberOf(row, "measured_ms"), predicted = NumberOf(row, "predicted_ms");
      table.rows.push_back({Text(row, "row"), Text(row, "hardware"), Text(row, "network"),
                            Number(NumberOf(row, "devices")), Number(measured), Number(predicted),
                            fmt::format("{:.2f}", predicted / measured)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section FindingsSection(const Json& fit) {
  Section section{.title = "What was wrong with the rows", .blocks = {}, .folded = true};
  section.blocks.emplace_back(Paragraph{fmt::format(
      "{} rows: {} skipped by the SPEC, {} unusable, {} left out (copies and wrong units), {} fitted.",
      Whole(fit, "rows"), Whole(fit, "skipped"), Whole(fit, "unusable"), Whole(fit, "left_out"),
      Whole(fit, "fitted"))});
  Table table{.caption = "Findings", .columns = {"kind", "rows", "what"}, .rows = {}, .text_columns = 3};
  for (const Json& finding : fit["findings"]) {
    if (table.rows.size() == kMostTold) {
      table.notes.push_back(
          fmt::format("The first {} of {}; --json has all.", kMostTold, fit["findings"].size()));
      break;
    }
    const Json& rows = finding["rows"];
    std::string names = rows.empty() ? "" : rows[0].get<std::string>();
    if (rows.size() > 1) names += fmt::format(" and {} more", rows.size() - 1);
    table.rows.push_back({Text(finding, "fault"), std::move(names), Text(finding, "what")});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

Section ModelsSection(const Json& fit) {
  return {.title = "The models, and how to fit them again",
          .blocks = {Paragraph{Text(fit, "models"), Paragraph::Tone::kCommand},
                     Paragraph{Text(fit, "command"), Paragraph::Tone::kCommand}},
          .folded = true};
}

}  // namespace

Document FitDocument(const Json& fit) {
  Document document{
      .title = fmt::format("Predicting {} of {}", Text(fit, "target"), Text(fit, "name")),
      .subtitle = fmt::format("{} rows fitted of {}, estimator {}, seed {}", Whole(fit, "fitted"),
                              Whole(fit, "rows"), Text(fit, "estimator"), fit["seed"].get<int64_t>()),
      .sections = {}};
  for (const auto section : {AnswerSection, ChartsSection, GroupsSection, CandidatesSection, WorstSection,
                             FindingsSection, ModelsSection})
    document.sections.push_back(section(fit));
  return document;
}

}  // namespace weir::report
