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

using results::FitResult;

constexpr size_t kMostBars = 30;
constexpr size_t kMostTold = 200;  // findings

std::string Percents(double percent) { return fmt::format("{:.1f}", percent); }
std::string Whole(int64_t number) { return Number(static_cast<double>(number)); }

// Returns no split where the rows were not cross-validated.
const std::vector<FitResult::Split>& SplitsOf(const FitResult& fit) {
  static const std::vector<FitResult::Split> none;
  return fit.splits ? *fit.splits : none;
}

std::string SplitName(const FitResult::Split& split) {
  static const std::map<std::string, std::string> names = {
      {FitResult::Split::kInside, "inside the data"},
      {FitResult::Split::kCount, "more devices than were measured"},
      {FitResult::Split::kHardware, "hardware that was never measured"},
      {FitResult::Split::kNetwork, "a network that was never measured"}};
  const auto found = names.find(split.name);
  return found == names.end() ? split.name : found->second;
}

// How far predictions of a split may be trusted: by how often the intervals hold, and by the 90 % quantile of
// the errors.
struct Reliability {
  const char* words;
  Paragraph::Tone tone;
};
Reliability ReliabilityOf(const FitResult::Split& split) {
  const double held = split.interval_coverage_percent, p90 = split.score.p90_percent;
  if (held >= 85 && p90 <= 50) return {"Reliable", Paragraph::Tone::kAnswer};
  if (held >= 80 && p90 <= 200) return {"Use with care", Paragraph::Tone::kWarning};
  return {"Not reliable", Paragraph::Tone::kFailure};
}

Section AnswerSection(const FitResult& fit) {
  Section section{.title = "How far off are its predictions?"};
  Table table{
      .caption = "Error of predicted times of rows that were left out of the fit",
      .columns = {"Predicted", "median %", "90 % of rows below %", "exp|log| %", "mape %", "rows",
                  "intervals hold %", "half-width of intervals %", "interval score of constant width"}};
  for (const FitResult::Split& split : SplitsOf(fit)) {
    const Reliability reliability = ReliabilityOf(split);
    section.blocks.emplace_back(Paragraph{
        fmt::format("{}, {}: {} % off in the median, at most {} % for 90 % of rows; intervals hold {} %.",
                    reliability.words, SplitName(split), Percents(split.score.median_percent),
                    Percents(split.score.p90_percent), Percents(split.interval_coverage_percent)),
        reliability.tone});
    table.rows.push_back(
        {SplitName(split), Percents(split.score.median_percent), Percents(split.score.p90_percent),
         Percents(split.score.log_mean_percent), Percents(split.score.mean_percent), Whole(split.score.rows),
         Percents(split.interval_coverage_percent), Percents(split.interval_half_width_percent),
         fmt::format("{:.2f}", split.interval_score_of_constant)});
  }
  if (SplitsOf(fit).empty()) {
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

Chart ProfileChart(const FitResult& fit) {
  Chart chart{
      .kind = Chart::Kind::kLines,
      .title = "Predicted against measured",
      .x_label = "measured time, ms",
      .y_label = "predicted / measured",
      .series = {},
      .note = "1 is right. Each point is the median of rows of like time; its bar holds 90 % of them."};
  for (const FitResult::Split& split : SplitsOf(fit)) {
    if (!split.profile || split.profile->empty()) continue;
    Series series{.name = SplitName(split), .points = {}};
    for (const FitResult::ProfilePoint& point : *split.profile) {
      series.points.push_back({.x = point.measured_ms,
                               .name = {},
                               .value = point.predicted_over_measured,
                               .low = point.low,
                               .high = point.high,
                               .note = Count(point.rows, "row")});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart LearningChart(const std::vector<FitResult::LearningPoint>& curve) {
  Chart chart{.kind = Chart::Kind::kLines,
              .title = "What more rows would bring",
              .x_label = "rows of the fit",
              .y_label = "error of rows that no fit saw, %",
              .series = {{.name = "exp|log|", .points = {}}, {.name = "median", .points = {}}},
              .note =
                  "A curve that still falls says: measure more. The fits chose their mixture without the "
                  "rows that are predicted."};
  for (const FitResult::LearningPoint& point : curve) {
    const std::string note =
        fmt::format("{} % answered, intervals hold {} %", Percents(point.answered_percent),
                    Percents(point.interval_coverage_percent));
    const auto add = [&](Series& series, double percent) {
      series.points.push_back({.x = static_cast<double>(point.fitted),
                               .name = {},
                               .value = percent,
                               .low = {},
                               .high = {},
                               .note = note});
    };
    add(chart.series[0], point.score.log_mean_percent);
    add(chart.series[1], point.score.median_percent);
  }
  return chart;
}

Section ChartsSection(const FitResult& fit) {
  Section section{.title = "Predicted against measured"};
  if (Chart profile = ProfileChart(fit); !profile.series.empty())
    section.blocks.emplace_back(std::move(profile));
  if (!fit.learning_curve.empty()) section.blocks.emplace_back(LearningChart(fit.learning_curve));
  if (section.blocks.empty()) section.blocks.emplace_back(Paragraph{"Too few rows were left out to draw."});
  return section;
}

Table GroupTable(const std::vector<FitResult::Group>& groups, std::string caption, const char* what) {
  Table table{.caption = std::move(caption),
              .columns = {what, "exp|log| %", "median %", "90 % below %", "rows"}};
  for (const FitResult::Group& group : groups)
    table.rows.push_back({group.name, Percents(group.score.log_mean_percent),
                          Percents(group.score.median_percent), Percents(group.score.p90_percent),
                          Whole(group.score.rows)});
  return table;
}

void AddGroups(const FitResult::Split& split, const std::optional<std::vector<FitResult::Group>>& of_split,
               const char* what, Section& section) {
  if (!of_split || of_split->size() < 2) return;
  const std::vector<FitResult::Group>& groups = *of_split;
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
  for (const FitResult::Group& group : groups)
    series.points.push_back({.x = {},
                             .name = group.name,
                             .value = group.score.log_mean_percent,
                             .low = {},
                             .high = {},
                             .note = Count(group.score.rows, "row")});
  section.blocks.emplace_back(std::move(chart));
}

Section GroupsSection(const FitResult& fit) {
  Section section{.title = "Error by group"};
  for (const FitResult::Split& split : SplitsOf(fit)) {
    AddGroups(split, split.by_hardware, "hardware", section);
    AddGroups(split, split.by_network, "network", section);
    AddGroups(split, split.by_devices, "devices", section);
  }
  if (section.blocks.empty())
    section.blocks.emplace_back(Paragraph{"The rows have no groups to tell apart."});
  return section;
}

Section CandidatesSection(const FitResult& fit) {
  Section section{.title = "Every candidate"};
  for (const FitResult::Split& split : SplitsOf(fit)) {
    Table table{.caption = SplitName(split),
                .columns = {"candidate", "exp|log| %", "median %", "90 % below %", "rows", "weight"}};
    const auto row = [&](std::string name, const results::FitScore& scores, std::string weight) {
      table.rows.push_back({std::move(name), Percents(scores.log_mean_percent),
                            Percents(scores.median_percent), Percents(scores.p90_percent), Whole(scores.rows),
                            std::move(weight)});
    };
    row(fit.estimator.value_or(""), split.score, "");
    for (const FitResult::Candidate& candidate : split.candidates) {
      row(candidate.name, candidate.score,
          candidate.weight > 0 ? fmt::format("{:.2f}", candidate.weight) : "");
    }
    section.blocks.emplace_back(std::move(table));
  }
  section.blocks.emplace_back(Paragraph{"The first line is the mixture of those with a weight."});
  return section;
}

Section WorstSection(const FitResult& fit) {
  Section section{.title = "The worst rows", .blocks = {}, .folded = true};
  for (const FitResult::Split& split : SplitsOf(fit)) {
    if (!split.worst) continue;
    Table table{.caption = SplitName(split),
                .columns = {"row", "hardware", "network", "devices", "measured ms", "predicted ms", "times"},
                .rows = {},
                .text_columns = 3};
    for (const FitResult::Case& row : *split.worst) {
      table.rows.push_back({row.row, row.hardware, row.network, Number(row.devices), Number(row.measured_ms),
                            Number(row.predicted_ms),
                            fmt::format("{:.2f}", row.predicted_ms / row.measured_ms)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section FindingsSection(const FitResult& fit) {
  Section section{.title = "What was wrong with the rows", .blocks = {}, .folded = true};
  section.blocks.emplace_back(Paragraph{fmt::format(
      "{} rows: {} skipped by the SPEC, {} unusable, {} left out (copies and wrong units), {} fitted.",
      Whole(fit.rows), Whole(fit.skipped), Whole(fit.unusable), Whole(fit.left_out),
      Whole(fit.fitted.value_or(0)))});
  Table table{.caption = "Findings", .columns = {"kind", "rows", "what"}, .rows = {}, .text_columns = 3};
  for (const FitResult::Finding& finding : fit.findings) {
    if (table.rows.size() == kMostTold) {
      table.notes.push_back(
          fmt::format("The first {} of {}; --json has all.", kMostTold, fit.findings.size()));
      break;
    }
    const std::vector<std::string>& rows = finding.rows;
    std::string names = rows.empty() ? "" : rows.front();
    if (rows.size() > 1) names += fmt::format(" and {} more", rows.size() - 1);
    table.rows.push_back({finding.fault, std::move(names), finding.what});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

Section ModelsSection(const FitResult& fit) {
  return {.title = "The models, and how to fit them again",
          .blocks = {Paragraph{fit.models.value_or(""), Paragraph::Tone::kCommand},
                     Paragraph{fit.command.value_or(""), Paragraph::Tone::kCommand}},
          .folded = true};
}

}  // namespace

Document FitDocument(const FitResult& fit) {
  Document document{
      .title = fmt::format("Predicting {} of {}", fit.target, fit.name),
      .subtitle = fmt::format("{} rows fitted of {}, estimator {}, seed {}", Whole(fit.fitted.value_or(0)),
                              Whole(fit.rows), fit.estimator.value_or(""), fit.seed.value_or(0)),
      .sections = {}};
  for (const auto section : {AnswerSection, ChartsSection, GroupsSection, CandidatesSection, WorstSection,
                             FindingsSection, ModelsSection})
    document.sections.push_back(section(fit));
  return document;
}

}  // namespace weir::report
