#include "study/variance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "stats/anova.h"
#include "stats/family.h"
#include "study/factor.h"

namespace weir::study {
namespace {

// A few seconds of one core: rows times columns squared, of all fits.
constexpr double kMostWork = 4e9;
constexpr double kLeastVariance = 1e-18;  // of logarithms: below it there is nothing but rounding

// One factor's levels, numbered as they are met.
struct Column {
  std::string name;
  std::vector<int> levels;
  int count = 0;
  bool is_lacking = false;  // some of its configurations do not have it
};

struct Data {
  std::vector<double> logs;
  std::vector<Measured::Value> values;
};

// The steps of a waterfall cross no factors, so they are no part of the model.
Data DataOf(const Design& design, const Measured& measured, const std::string& metric) {
  Data data;
  for (const Measured::Value& one : measured.Trials(metric)) {
    if (!(one.value > 0) || design.configurations[one.played->trial.configuration].waterfall_only) continue;
    data.logs.push_back(std::log(one.value));
    data.values.push_back(one);
  }
  return data;
}

template <typename KeyOf>
Column MakeColumn(std::string name, const Data& data, KeyOf key_of) {
  Column column{.name = std::move(name)};
  std::map<std::string, int> numbers;
  for (const Measured::Value& one : data.values) {
    const std::string key = key_of(one);
    column.is_lacking |= key.empty();
    const auto [known, is_new] = numbers.try_emplace(key, column.count);
    column.count += is_new;
    column.levels.push_back(known->second);
  }
  return column;
}

Column BlockColumn(const Data& data) {
  return MakeColumn("block", data, [](const auto& one) { return std::to_string(one.played->trial.block); });
}

// The factors of which the study spells out several levels. Others differ only where a rule takes them away,
// as the network of one process, and would hide the factor that the rule goes by.
std::vector<Column> FactorColumns(const Design& design, const Data& data) {
  std::map<std::string, std::set<std::string>> named;
  for (const Combination& one : design.combinations) {
    for (const auto& [name, level] : one.factors.items()) named[name].insert(DumpJson(level));
  }
  std::vector<Column> columns;
  for (const Factor& factor : Factors()) {
    const std::string name(factor.name);
    if (named[name].size() < 2) continue;
    Column column = MakeColumn(name, data, [&](const auto& one) {
      const Json& factors = design.configurations[one.played->trial.configuration].factors;
      const auto level = factors.find(name);
      return level == factors.end() ? std::string() : DumpJson(*level);
    });
    if (column.count > 1) columns.push_back(std::move(column));
  }
  return columns;
}

using IndexPairs = std::vector<std::pair<size_t, size_t>>;

double WorkOf(const std::vector<Column>& columns, const IndexPairs& interactions, size_t rows) {
  double width = 1;
  for (const Column& column : columns) width += column.count - 1;
  for (const auto& [a, b] : interactions) width += double(columns[a].count - 1) * (columns[b].count - 1);
  const double fits = 1 + 2 * static_cast<double>(columns.size() + interactions.size());
  return fits * static_cast<double>(rows) * width * width;
}

std::vector<stats::FactorLevels> LevelsOf(const std::vector<Column>& columns) {
  std::vector<stats::FactorLevels> levels;
  for (const Column& column : columns) levels.push_back(column.levels);
  return levels;
}

double Variance(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size());
}

// The levels of the factors in each configuration that was met, without the block: repeats tell no factors
// apart.
std::vector<stats::FactorLevels> LevelsMet(const std::vector<Column>& columns, size_t rows) {
  std::set<std::vector<int>> met;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<int> levels;
    for (size_t i = 1; i < columns.size(); ++i) levels.push_back(columns[i].levels[row]);
    met.insert(std::move(levels));
  }
  std::vector<stats::FactorLevels> by_factor(columns.size() - 1);
  for (const std::vector<int>& levels : met) {
    for (size_t i = 0; i < levels.size(); ++i) by_factor[i].push_back(levels[i]);
  }
  return by_factor;
}

// columns[0] is the block.
void AddAliases(const std::vector<Column>& columns, const IndexPairs& interactions, size_t rows,
                VarianceTable& table) {
  IndexPairs pairs;
  for (const auto& [a, b] : interactions) pairs.emplace_back(a - 1, b - 1);
  const auto levels = LevelsMet(columns, rows);
  for (const stats::AnovaAlias& alias : stats::FindAliases(levels, pairs)) {
    AliasedTerm term{.degrees = alias.degrees, .own_degrees = alias.own_degrees};
    const auto lacks = [&](size_t factor) {
      const Column& column = columns[factor + 1];
      if (column.is_lacking) term.not_applicable.push_back(column.name);
      return column.name;
    };
    for (const size_t factor : alias.factors) term.factors.push_back(lacks(factor));
    for (const size_t factor : alias.with) term.with.push_back(lacks(factor));
    table.aliased.push_back(std::move(term));
  }
}

void AddTerms(const stats::Anova& anova, const std::vector<Column>& columns, VarianceTable& table) {
  double all = anova.residual_sum_of_squares;
  for (const stats::AnovaTerm& term : anova.terms) all += term.sum_of_squares;
  std::vector<double> p;
  for (const stats::AnovaTerm& term : anova.terms) {
    VarianceTerm one{.degrees = term.degrees, .f = term.f, .p = term.p, .adjusted_p = term.p};
    for (const size_t factor : term.factors) one.factors.push_back(columns[factor].name);
    one.share = all > 0 ? term.sum_of_squares / all : 0;
    if (one.factors[0] != "block") p.push_back(one.p);
    table.terms.push_back(std::move(one));
  }
  const std::vector<double> adjusted = stats::HolmAdjust(p);
  size_t next = 0;
  for (VarianceTerm& term : table.terms) {
    if (term.factors[0] != "block") term.adjusted_p = adjusted[next++];
  }
}

}  // namespace

Interactions VarianceTable::Significant(double alpha) const {
  Interactions found;
  for (const VarianceTerm& term : terms) {
    if (term.factors.size() == 2 && term.adjusted_p <= alpha)
      found.emplace_back(term.factors[0], term.factors[1]);
  }
  return found;
}

VarianceTable AnalyseObjective(const Design& design, const Measured& measured, const std::string& metric,
                               const AnalysisOptions&) {
  const Data data = DataOf(design, measured, metric);
  VarianceTable table{.metric = metric, .trials = std::ssize(data.logs)};
  std::vector<Column> columns{BlockColumn(data)};
  for (Column& one : FactorColumns(design, data)) columns.push_back(std::move(one));
  if (columns.size() < 2) {
    table.left_out = "no factor varies among the trials that count";
    return table;
  }
  if (columns[0].count < 2) {
    table.left_out = "one block alone does not tell the trials' spread";
    return table;
  }
  IndexPairs interactions;
  for (size_t a = 1; a < columns.size(); ++a) {
    for (size_t b = a + 1; b < columns.size(); ++b) interactions.emplace_back(a, b);
  }
  if (WorkOf(columns, interactions, data.logs.size()) > kMostWork) interactions.clear();
  if (WorkOf(columns, interactions, data.logs.size()) > kMostWork) {
    table.left_out = "the study is too large for it";
    return table;
  }
  if (Variance(data.logs) < kLeastVariance) {
    table.left_out = "all trials gave the same figure";
    return table;
  }
  const auto anova = stats::AnalyseVariance(data.logs, LevelsOf(columns), interactions);
  if (!anova) {
    table.left_out = anova.error().message;
    return table;
  }
  const double variance = anova->residual_sum_of_squares / static_cast<double>(anova->residual_degrees);
  if (variance < kLeastVariance) {
    table.left_out = "the trials of a configuration do not differ at all";
    return table;
  }
  AddTerms(*anova, columns, table);
  AddAliases(columns, interactions, data.logs.size(), table);
  table.residual_degrees = anova->residual_degrees;
  table.residual_deviation = std::expm1(std::sqrt(variance));
  table.normality_p = anova->normality_p;
  table.durbin_watson = anova->durbin_watson;
  return table;
}

std::vector<OutlierTrial> FindOutlierTrials(const Design& design, const Measured& measured,
                                            const std::string& metric, std::string& left_out) {
  const Data data = DataOf(design, measured, metric);
  std::vector<Column> columns{BlockColumn(data)};
  columns.push_back(MakeColumn("configuration", data, [](const auto& one) {
    return std::to_string(one.played->trial.configuration);
  }));
  std::vector<OutlierTrial> found;
  if (design.blocks < 3 || data.logs.size() < 4 || Variance(data.logs) < kLeastVariance) return found;
  std::erase_if(columns, [](const Column& column) { return column.count < 2; });
  if (WorkOf(columns, {}, data.logs.size()) > kMostWork) {
    left_out = "the study has too many configurations for a model of them all";
    return found;
  }
  const auto anova = stats::AnalyseVariance(data.logs, LevelsOf(columns), {});
  if (!anova) return found;
  if (anova->residual_sum_of_squares / static_cast<double>(anova->residual_degrees) < kLeastVariance)
    return found;
  for (const stats::AnovaOutlier& one : anova->outliers) {
    const Measured::Value& value = data.values[one.observation];
    const Trial& trial = value.played->trial;
    found.push_back({.configuration = trial.configuration,
                     .block = trial.block,
                     .position = trial.position,
                     .value = value.value,
                     .ratio = std::exp(anova->residuals[one.observation]),
                     .t = one.t,
                     .p = one.p,
                     .evidence = EvidenceText(value.played->record.verdict)});
  }
  return found;
}

std::string EvidenceText(const results::Verdict& verdict) {
  std::string text;
  for (const results::Cause& cause : verdict.causes)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", ToString(cause.reason), cause.evidence);
  return text;
}

}  // namespace weir::study
