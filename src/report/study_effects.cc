// The effects of the factors, level by level where they interact; architectures side by side; the model's
// checks.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "report/number.h"
#include "report/study_report.h"
#include "report/unit.h"

namespace weir::report {
namespace {

std::string ToldText(const Json& one) {
  const std::string told = one["told"].get<std::string>();
  const auto limit = NumberAt(one, "limit");
  return told == "no difference shown" && limit ? fmt::format("{} (limit {})", told, Percent(*limit)) : told;
}

std::string RangeText(const Json& one) {
  if (!one.contains("least")) return "-";
  return fmt::format("{} to {}", Number(one["least"]["ratio"].get<double>()),
                     Number(one["most"]["ratio"].get<double>()));
}

// A main effect that hides opposite ones is no finding: its row says how it acts instead.
std::string FindingText(const Json& one) {
  const std::string acts = one.value("acts", "alike");
  if (acts == "in opposite directions")
    return fmt::format("acts in opposite directions: {} pairs higher, {} lower",
                       one.value("pairs_higher", int64_t{0}), one.value("pairs_lower", int64_t{0}));
  if (acts == "differently by level") return fmt::format("{}, by level: see below", ToldText(one));
  return ToldText(one);
}

Table MainEffects(const StudyView& study) {
  Table table{.columns = {"factor", "from", "to", "finding", "ratio", "range over pairs", "pairs", "blocks"},
              .text_columns = 4};
  for (const Json& one : study.At("effects")) {
    const bool hides = one.value("acts", "alike") == "in opposite directions";
    table.rows.push_back({FactorWords(one["factor"].get<std::string>()), one["from"].get<std::string>(),
                          one["to"].get<std::string>(), FindingText(one),
                          hides ? "-" : IntervalText(one, "ratio"), RangeText(one),
                          fmt::format("{}", one["pairs"].get<int64_t>()),
                          fmt::format("{}", one["n"].get<int64_t>())});
  }
  table.caption = fmt::format("{}: the level over the level it is compared with, all else equal",
                              MetricWords(study.objective()));
  table.notes = {
      "Each ratio is the geometric mean over all pairs of configurations that differ in this factor alone, "
      "block by block. The range has the pair with the least and the one with the greatest ratio.",
      fmt::format("Findings hold for the whole table: their p-values are adjusted by Holm's method at the "
                  "level {}. The limit is the largest difference that the interval leaves open.",
                  study.At("options")["alpha"].get<double>())};
  return table;
}

Table LevelEffects(const StudyView& study) {
  Table table{.caption = "Level by level, where factors interact",
              .columns = {"factor", "from", "to", "where", "finding", "ratio", "pairs"},
              .text_columns = 5};
  for (const Json& one : study.At("effects")) {
    for (const Json& level : one.value("by_level", Json::array()))
      table.rows.push_back({FactorWords(one["factor"].get<std::string>()), one["from"].get<std::string>(),
                            one["to"].get<std::string>(),
                            fmt::format("{}: {}", FactorWords(level["factor"].get<std::string>()),
                                        level["level"].get<std::string>()),
                            ToldText(level), IntervalText(level, "ratio"),
                            fmt::format("{}", level["pairs"].get<int64_t>())});
  }
  return table;
}

Table Architectures(const StudyView& study) {
  Table table{.caption = "Architectures at equal other levels",
              .columns = {"other levels", "architecture", "against", "finding", "ratio", "blocks"},
              .text_columns = 4};
  for (const Json& one : study.At("architectures")) {
    const std::string at = one.value("at", "");
    table.rows.push_back({at.empty() ? "all equal" : at, one["to"].get<std::string>(),
                          one["from"].get<std::string>(), ToldText(one), IntervalText(one, "ratio"),
                          fmt::format("{}", one["n"].get<int64_t>())});
  }
  table.notes = {"One family: p-values are adjusted by Holm's method over all rows of this table."};
  return table;
}

std::string TermName(const Json& term) {
  std::string name;
  for (const Json& factor : term["factors"]) name += (name.empty() ? "" : " × ") + FactorWords(factor);
  return name;
}

void AddVariance(const StudyView& study, Section& section) {
  const Json& variance = study.At("variance");
  if (!variance.is_object()) return;
  if (const std::string why = variance.value("left_out", ""); !why.empty()) {
    section.blocks.emplace_back(Paragraph{fmt::format("There is no analysis of variance: {}.", why)});
    return;
  }
  Table table{.caption = "Analysis of variance of the logarithm, with blocks (type II)",
              .columns = {"term", "degrees of freedom", "F", "adjusted p", "share of the variation"}};
  for (const Json& term : variance["terms"])
    table.rows.push_back({TermName(term), fmt::format("{}", term["degrees"].get<int64_t>()),
                          Number(term["f"].get<double>()), Number(term["adjusted_p"].get<double>()),
                          Percent(term["share"].get<double>())});
  std::string checks =
      fmt::format("Residuals: {} degrees of freedom", variance["residual_degrees"].get<int64_t>());
  if (const auto deviation = NumberAt(variance, "residual_deviation"))
    checks += fmt::format(", a spread of {} from trial to trial", Percent(*deviation));
  if (const auto normal = NumberAt(variance, "normality_p"))
    checks += fmt::format("; {} (Jarque and Bera, p {})",
                          *normal < 0.01
                              ? "not normally distributed: rely on the medians, and on level-by-level ratios"
                              : "no departure from a normal distribution shown",
                          Number(*normal));
  if (const auto order = NumberAt(variance, "durbin_watson"))
    checks += fmt::format(
        "; {} (Durbin and Watson, {})",
        *order < 1.5 ? "neighbours in time resemble each other" : "neighbours in time differ freely",
        Number(*order));
  table.notes = {checks + "."};
  section.blocks.emplace_back(std::move(table));
}

void AddOutliers(const StudyView& study, Section& section) {
  if (const std::string why = study.json().value("outliers_left_out", ""); !why.empty())
    section.blocks.emplace_back(Paragraph{fmt::format("Outliers were not looked for: {}.", why)});
  const Json& outliers = study.At("outliers");
  if (!outliers.is_array() || outliers.empty()) return;
  Table table{.caption = "Trials that configuration and block do not explain (flagged, not removed)",
              .columns = {"configuration", "evidence of the cause", "block", "position", "of the expected"},
              .text_columns = 2};
  for (const Json& one : outliers) {
    const std::string evidence = one.value("evidence", "");
    table.rows.push_back({one["label"].get<std::string>(), evidence.empty() ? "none recorded" : evidence,
                          fmt::format("{}", one["block"].get<int64_t>() + 1),
                          fmt::format("{}", one["position"].get<int64_t>() + 1),
                          Number(one["ratio"].get<double>())});
  }
  section.blocks.emplace_back(std::move(table));
}

}  // namespace

Section EffectsSection(const StudyView& study) {
  Section section{.title = "Factors and their interactions"};
  Table effects = MainEffects(study);
  if (effects.rows.empty()) {
    section.blocks.emplace_back(Paragraph{"No two configurations that count differ in one factor alone."});
  } else {
    section.blocks.emplace_back(std::move(effects));
  }
  if (Table levels = LevelEffects(study); !levels.rows.empty())
    section.blocks.emplace_back(std::move(levels));
  if (Table pairs = Architectures(study); !pairs.rows.empty()) section.blocks.emplace_back(std::move(pairs));
  AddVariance(study, section);
  AddOutliers(study, section);
  return section;
}

}  // namespace weir::report
