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

std::string SplitName(const Json& split) {
  static const std::map<std::string, std::string> names = {{"inside", "inside the data"},
                                                           {"count", "more devices than were measured"},
                                                           {"hardware", "hardware that was never measured"},
                                                           {"network", "a network that was never measured"}};
  const auto found = names.find(Text(split, "split"));
  return found == names.end() ? Text(split, "split") : found->second;
}

// How far predictions of a split may be trusted: by how often the intervals hold, and by the 90 % quantile of
// the errors.
struct Reliability {
  const char* words;
  Paragraph::Tone tone;
};
Reliability ReliabilityOf(const Json& split) {
  const double held = NumberOf(split, "interval_coverage_percent"), p90 = NumberOf(split, "p90_percent");
  if (held >= 85 && p90 <= 50) return {"Reliable", Paragraph::Tone::kAnswer};
  if (held >= 80 && p90 <= 200) return {"Use with care", Paragraph::Tone::kWarning};
  return {"Not reliable", Paragraph::Tone::kFailure};
}

Section AnswerSection(const Json& fit) {
  Section section{.title = "How far off are its predictions?"};
  Table table{
      .caption = "Error of predicted times of rows that were left out of the fit",
      .columns = {"Predicted", "median %", "90 % of rows below %", "exp|log| %", "mape %", "rows",
                  "intervals hold %", "half-width of intervals %", "interval score of constant width"}};
  for (const Json& split : fit["splits"]) {
    const Reliability reliability = ReliabilityOf(split);
    section.blocks.emplace_back(Paragraph{
        fmt::format("{}, {}: {} % off in the median, at most {} % for 90 % of rows; intervals hold {} %.",
                    reliability.words, SplitName(split), Percents(split, "median_percent"),
                    Percents(split, "p90_percent"), Percents(split, "interval_coverage_percent")),
        reliability.tone});
    table.rows.push_back({SplitName(split), Percents(split, "median_percent"), Percents(split, "p90_percent"),
                          Percents(split, "log_mean_percent"), Percents(split, "mean_percent"),
                          Whole(split, "rows"), Percents(split, "interval_coverage_percent"),
                          Percents(split, "interval_half_width_percent"),
                          fmt::format("{:.2f}", NumberOf(split, "interval_score_of_constant"))});
  }
  if (fit["splits"].empty()) {
    section.blocks.emplace_back(
        Paragraph{"The rows could not be cross-validated: the error of the predictions is unknown.",
                  Paragraph::Tone::kFailure});
    return section;
  }
  table.notes.emplace_back(
      "Hardware, networks and counts are left out whole. exp|log| is exp(mean |log(predicted / measured)|) - "
      "1; "
      "mape is the mean absolute percentage error. The weights of the mixture were chosen on the same rows; "
      "the "
      "learning curve's were not.");
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
  for (const Json& split : fit["splits"]) {
    if (!split.contains("profile") || split["profile"].empty()) continue;
    Series series{.name = SplitName(split), .points = {}};
    for (const Json& point : split["profile"]) {
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
              .series = {{.name = "exp|log|", .points = {}}, {.name = "median", .points = {}}},
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
    add(chart.series[0], "log_mean_percent");
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
  Table table{.caption = std::move(caption),
              .columns = {what, "exp|log| %", "median %", "90 % below %", "rows"}};
  for (const Json& group : groups)
    table.rows.push_back({Text(group, "group"), Percents(group, "log_mean_percent"),
                          Percents(group, "median_percent"), Percents(group, "p90_percent"),
                          Whole(group, "rows")});
  return table;
}

void AddGroups(const Json& split, const char* key, const char* what, Section& section) {
  if (!split.contains(key) || split[key].size() < 2) return;
  const Json& groups = split[key];
  const std::string title = fmt::format("Error by {}, {}", what, SplitName(split));
  if (groups.size() > kMostBars) {  // bars of hundreds of networks are no picture
    section.blocks.emplace_back(GroupTable(groups, title, what));
    return;
  }
  Chart chart{.kind = Chart::Kind::kBars,
              .title = title,
              .x_label = {},
              .y_label = "exp|log|, %",
              .series = {},
              .note = {}};
  Series& series = chart.series.emplace_back();
  for (const Json& group : groups)
    series.points.push_back({.x = {},
                             .name = Text(group, "group"),
                             .value = NumberOf(group, "log_mean_percent"),
                             .low = {},
                             .high = {},
                             .note = Count(group["rows"].get<int64_t>(), "row")});
  section.blocks.emplace_back(std::move(chart));
}

Section GroupsSection(const Json& fit) {
  Section section{.title = "Error by group"};
  for (const Json& split : fit["splits"]) {
    AddGroups(split, "by_hardware", "hardware", section);
    AddGroups(split, "by_network", "network", section);
    AddGroups(split, "by_devices", "devices", section);
  }
  if (section.blocks.empty())
    section.blocks.emplace_back(Paragraph{"The rows have no groups to tell apart."});
  return section;
}

Section CandidatesSection(const Json& fit) {
  Section section{.title = "Every candidate"};
  for (const Json& split : fit["splits"]) {
    Table table{.caption = SplitName(split),
                .columns = {"candidate", "exp|log| %", "median %", "90 % below %", "rows", "weight"}};
    const auto row = [&](std::string name, const Json& scores, std::string weight) {
      table.rows.push_back({std::move(name), Percents(scores, "log_mean_percent"),
                            Percents(scores, "median_percent"), Percents(scores, "p90_percent"),
                            Whole(scores, "rows"), std::move(weight)});
    };
    row(Text(fit, "estimator"), split, "");
    for (const Json& candidate : split["candidates"]) {
      const double weight = NumberOf(candidate, "weight");
      row(Text(candidate, "candidate"), candidate, weight > 0 ? fmt::format("{:.2f}", weight) : "");
    }
    section.blocks.emplace_back(std::move(table));
  }
  section.blocks.emplace_back(Paragraph{"The first line is the mixture of those with a weight."});
  return section;
}

Section WorstSection(const Json& fit) {
  Section section{.title = "The worst rows", .blocks = {}, .folded = true};
  for (const Json& split : fit["splits"]) {
    if (!split.contains("worst")) continue;
    Table table{.caption = SplitName(split),
                .columns = {"row", "hardware", "network", "devices", "measured ms", "predicted ms", "times"},
                .rows = {},
                .text_columns = 3};
    for (const Json& row : split["worst"]) {
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
