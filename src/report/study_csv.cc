#include "report/study_csv.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/csv.h"
#include "base/json.h"
#include "report/number.h"
#include "report/study_text.h"

namespace weir::report {
namespace {

using Names = std::vector<std::string>;

void AddNew(const Json& object, Names& names) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
}

std::string Field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return Exact(value.get<double>());
  return DumpJson(value);
}

std::string FieldAt(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? "" : Field(*found);
}

std::string ExactOrEmpty(const std::optional<double>& value) { return value ? Exact(*value) : ""; }

// The names of columns.
const Names& Place() {
  static const Names kPlace{"id",   "attempt", "counts",   "configuration", "label",
                            "role", "block",   "position", "seed",          "took_s"};
  return kPlace;
}

const Names& Counts() {
  static const Names kCounts{"valid", "suspect", "invalid", "failed", "skipped"};
  return kCounts;
}

// The columns of each metric.
const Names& Each() {
  static const Names kEach{"n", "mean", "standard_error", "low", "high"};
  return kEach;
}

// The columns of the objective alone.
const Names& More() {
  static const Names kMore{"standard_deviation", "median", "median_low", "median_high", "min", "max"};
  return kMore;
}

const Names& Ratios() {
  static const Names kRatios{"ratio", "low", "high", "smallest_difference", "told"};
  return kRatios;
}

void AddFigures(const results::Figures* one, Names& fields) {
  if (one == nullptr) return fields.resize(fields.size() + Each().size());
  fields.insert(fields.end(), {std::to_string(one->n), Exact(one->mean), ExactOrEmpty(one->standard_error),
                               ExactOrEmpty(one->low), ExactOrEmpty(one->high)});
}

void AddMoreFigures(const results::Figures* one, Names& fields) {
  if (one == nullptr) return fields.resize(fields.size() + More().size());
  fields.insert(fields.end(),
                {ExactOrEmpty(one->standard_deviation), Exact(one->median), ExactOrEmpty(one->median_low),
                 ExactOrEmpty(one->median_high), Exact(one->min), Exact(one->max)});
}

void AddRatio(const results::StudyResult::Comparison* one, Names& fields) {
  if (one == nullptr) return fields.resize(fields.size() + Ratios().size());
  const results::RatioFigures& ratio = one->tested.ratio;
  fields.insert(fields.end(), {Exact(ratio.ratio), ExactOrEmpty(ratio.low), ExactOrEmpty(ratio.high),
                               ExactOrEmpty(one->tested.smallest_difference), one->tested.told});
}

void AddFields(const Json& object, const Names& names, Names& fields) {
  for (const std::string& name : names) fields.push_back(FieldAt(object, name));
}

void AddPrefixed(const std::string& prefix, const Names& names, Names& fields) {
  for (const std::string& name : names) fields.push_back(prefix + name);
}

// The objective's own figures have the plain names, so that a reader finds them without knowing which metric
// it is.
Names SummaryHeader(const Names& factors, const Names& metrics) {
  Names header{"configuration", "label"};
  AddPrefixed("", factors, header);
  AddPrefixed("trials_", Counts(), header);
  header.emplace_back("objective");
  AddPrefixed("", Each(), header);
  AddPrefixed("", More(), header);
  AddPrefixed("reference_", Ratios(), header);
  for (const std::string& metric : metrics) AddPrefixed(metric + ":", Each(), header);
  return header;
}

}  // namespace

std::string ResultsCsv(const results::StudyResult& result) {
  const Names verdict{"verdict", "reasons", "message"};
  Names factors, metrics;
  for (const results::StudyResult::Row& row : result.rows) {
    AddNew(row.levels, factors);
    AddNew(row.metrics, metrics);
  }
  Names header;
  for (const Names& names : {Place(), factors, verdict}) AddPrefixed("", names, header);
  std::unordered_set<std::string> taken(header.begin(), header.end());
  taken.emplace("command");
  taken.emplace("server_command");
  for (const std::string& metric : metrics) header.push_back(TakeMetricName(metric, taken));
  header.emplace_back("command");
  header.emplace_back("server_command");
  std::string csv = CsvLine(header);
  for (const results::StudyResult::Row& row : result.rows) {
    Names fields{row.id,
                 std::to_string(row.attempt),
                 row.counts ? "true" : "false",
                 std::to_string(row.configuration),
                 row.label,
                 row.role,
                 std::to_string(row.block),
                 std::to_string(row.position),
                 std::to_string(row.seed),
                 Exact(row.took_s)};
    AddFields(row.levels, factors, fields);
    fields.emplace_back(ToString(row.verdict.standing));
    fields.push_back(ReasonsText(row.verdict));
    fields.push_back(row.verdict.message);
    AddFields(row.metrics, metrics, fields);
    fields.push_back(row.command);
    fields.push_back(row.server_command);
    csv += CsvLine(fields);
  }
  return csv;
}

std::string SummaryCsv(const results::StudyResult& result) {
  const std::string& objective = result.study.metric;
  Names factors, metrics;
  for (const results::StudyResult::Configuration& one : result.configurations) {
    AddNew(one.design.levels, factors);
    for (const auto& [metric, figures] : one.metrics.all) {
      if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
    }
  }
  std::string csv = CsvLine(SummaryHeader(factors, metrics));
  for (size_t i = 0; i < result.configurations.size(); ++i) {
    const results::TrialCounts& trials = result.configurations[i].trials;
    Names fields{std::to_string(i), result.label(i)};
    AddFields(result.configurations[i].design.levels, factors, fields);
    for (const int64_t count : {trials.valid, trials.suspect, trials.invalid, trials.failed, trials.skipped})
      fields.push_back(std::to_string(count));
    fields.push_back(objective);
    AddFigures(result.FindFigures(i, objective), fields);
    AddMoreFigures(result.FindFigures(i, objective), fields);
    AddRatio(result.FindComparison(i, objective), fields);
    for (const std::string& metric : metrics) AddFigures(result.FindFigures(i, metric), fields);
    csv += CsvLine(fields);
  }
  return csv;
}

}  // namespace weir::report
