// The effects of the factors, level by level where they interact; architectures side by side; the model's
// checks.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "report/number.h"
#include "report/study_report.h"
#include "report/study_text.h"
#include "report/unit.h"

namespace weir::report {
namespace {

using Effect = StudyResult::Effect;

std::string RangeText(const Effect& one) {
  if (!one.least || !one.most) return "-";
  return fmt::format("{} to {}", Number(one.least->tested.ratio.ratio), Number(one.most->tested.ratio.ratio));
}

// A main effect that hides opposite ones is no finding: its row says how it acts instead.
std::string FindingText(const Effect& one) {
  if (one.acts == Effect::kOpposite)
    return fmt::format("acts in opposite directions: {} pairs higher, {} lower", one.pairs_higher,
                       one.pairs_lower);
  if (one.acts == Effect::kByLevel) return fmt::format("{}, by level: see below", ToldText(one.tested));
  return ToldText(one.tested);
}

Table MainEffects(const StudyResult& study) {
  Table table{.columns = {"factor", "from", "to", "finding", "ratio", "range over pairs", "pairs", "blocks"},
              .text_columns = 4};
  for (const Effect& one : study.effects) {
    const bool hides = one.acts == Effect::kOpposite;
    table.rows.push_back({FactorWords(one.factor), one.from, one.to, FindingText(one),
                          hides ? "-" : IntervalText(one.tested.ratio), RangeText(one),
                          fmt::format("{}", one.pairs), fmt::format("{}", one.tested.ratio.n)});
  }
  table.caption = fmt::format("{}: the level over the level it is compared with, all else equal",
                              MetricWords(study.study.metric));
  table.notes = {
      "Each ratio is the geometric mean over all pairs of configurations that differ in this factor alone, "
      "block by block. The range has the pair with the least and the one with the greatest ratio.",
      fmt::format("Findings hold for the whole table and the next one: the intervals are simultaneous at {} "
                  "(Bonferroni), and a difference is shown where one of them leaves 1 out. The limit is the "
                  "largest difference that the interval leaves open.",
                  Percent(study.options.confidence))};
  return table;
}

Table LevelEffects(const StudyResult& study) {
  Table table{.caption = "Level by level, where factors interact",
              .columns = {"factor", "from", "to", "where", "finding", "ratio", "pairs"},
              .text_columns = 5};
  for (const Effect& one : study.effects) {
    for (const StudyResult::LevelEffect& level : one.by_level)
      table.rows.push_back({FactorWords(one.factor), one.from, one.to,
                            fmt::format("{}: {}", FactorWords(level.factor), level.level),
                            ToldText(level.tested), IntervalText(level.tested.ratio),
                            fmt::format("{}", level.pairs)});
  }
  return table;
}

Table Architectures(const StudyResult& study) {
  Table table{.caption = "Architectures at equal other levels",
              .columns = {"other levels", "architecture", "against", "finding", "ratio", "blocks"},
              .text_columns = 4};
  for (const StudyResult::ArchitecturePair& one : study.architectures) {
    const results::TestedRatio& tested = one.pair.tested;
    table.rows.push_back({one.at.empty() ? "all equal" : one.at, one.to, one.from, ToldText(tested),
                          IntervalText(tested.ratio), fmt::format("{}", tested.ratio.n)});
  }
  table.notes = {"One family: the intervals of all rows are simultaneous (Bonferroni)."};
  return table;
}

constexpr size_t kMostAliases = 6;  // with their interactions

std::string Joined(const std::vector<std::string>& factors, const char* between) {
  std::string text;
  for (const std::string& factor : factors) text += (text.empty() ? "" : between) + FactorWords(factor);
  return text;
}

std::string AliasText(const StudyResult::AliasedTerm& one) {
  const std::string term = Joined(one.factors, " × ");
  std::string text =
      one.degrees == 0
          ? fmt::format("{} has no degree of freedom of its own ({} by its levels), so it has no row", term,
                        one.own_degrees)
          : fmt::format("{} has {} of the {} degrees of freedom of its levels", term, one.degrees,
                        one.own_degrees);
  if (!one.with.empty()) text += fmt::format(": the rest cannot be told from {}", Joined(one.with, ", "));
  if (!one.not_applicable.empty())
    text += fmt::format(" (aliased by \"not applicable\" in {})", Joined(one.not_applicable, ", "));
  return text + ".";
}

void AddVariance(const StudyResult& study, Section& section) {
  const StudyResult::Variance& variance = study.variance;
  if (!variance.terms) {
    section.blocks.emplace_back(
        Paragraph{fmt::format("There is no analysis of variance: {}.", variance.left_out)});
    return;
  }
  Table table{.caption = "Analysis of variance of the logarithm, with blocks (type II)",
              .columns = {"term", "degrees of freedom", "F", "adjusted p", "share of the variation"}};
  for (const StudyResult::VarianceTerm& term : *variance.terms)
    table.rows.push_back({Joined(term.factors, " × "), fmt::format("{}", term.degrees), Number(term.f),
                          Number(term.adjusted_p), Percent(term.share)});
  std::string checks = fmt::format("Residuals: {} degrees of freedom", variance.residual_degrees.value_or(0));
  if (variance.residual_deviation)
    checks += fmt::format(", a spread of {} from trial to trial", Percent(*variance.residual_deviation));
  if (const auto& normal = variance.normality_p)
    checks += fmt::format("; {} (Jarque and Bera, p {})",
                          *normal < 0.01
                              ? "not normally distributed: rely on the medians, and on level-by-level ratios"
                              : "no departure from a normal distribution shown",
                          Number(*normal));
  if (const auto& order = variance.durbin_watson)
    checks += fmt::format(
        "; {} (Durbin and Watson, {})",
        *order < 1.5 ? "neighbours in time resemble each other" : "neighbours in time differ freely",
        Number(*order));
  table.notes = {checks + "."};
  for (const StudyResult::AliasedTerm& one : variance.aliased) {
    if (one.factors.size() == 1 || variance.aliased.size() <= kMostAliases)
      table.notes.push_back(AliasText(one));
  }
  section.blocks.emplace_back(std::move(table));
}

void AddOutliers(const StudyResult& study, Section& section) {
  if (!study.outliers_left_out.empty())
    section.blocks.emplace_back(
        Paragraph{fmt::format("Outliers were not looked for: {}.", study.outliers_left_out)});
  if (study.outliers.empty()) return;
  Table table{.caption = "Trials that configuration and block do not explain (flagged, not removed)",
              .columns = {"configuration", "evidence of the cause", "block", "position", "of the expected"},
              .text_columns = 2};
  for (const StudyResult::Outlier& one : study.outliers)
    table.rows.push_back({one.label, one.evidence.empty() ? "none recorded" : one.evidence,
                          fmt::format("{}", one.block + 1), fmt::format("{}", one.position + 1),
                          Number(one.ratio)});
  section.blocks.emplace_back(std::move(table));
}

}  // namespace

Section EffectsSection(const StudyResult& study) {
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
