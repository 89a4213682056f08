#include "report/study_csv.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/csv.h"
#include "report/number.h"
#include "report/study_view.h"

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

// The figures of a metric, in the order of their columns.
const Names& Each() {
  static const Names kEach{"n", "mean", "standard_error", "low", "high"};
  return kEach;
}

// The columns that only the objective has.
const Names& More() {
  static const Names kMore{"standard_deviation", "median", "median_low", "median_high", "min", "max"};
  return kMore;
}

const Names& Ratios() {
  static const Names kRatios{"ratio", "low", "high", "smallest_difference", "told"};
  return kRatios;
}

const Names& Counts() {
  static const Names kCounts{"valid", "suspect", "invalid", "failed", "skipped"};
  return kCounts;
}

void AddFields(const Json& object, const Names& names, Names& fields) {
  for (const std::string& name : names) fields.push_back(object.is_object() ? FieldAt(object, name) : "");
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

std::string ResultsCsv(const Json& result) {
  const Names place{"id",   "attempt", "counts",   "configuration", "label",
                    "role", "block",   "position", "seed",          "took_s"};
  const Names verdict{"verdict", "reasons", "message"};
  Names factors, metrics;
  for (const Json& row : result["rows"]) {
    AddNew(row["levels"], factors);
    AddNew(row["metrics"], metrics);
  }
  Names header;
  for (const Names& names : {place, factors, verdict}) AddPrefixed("", names, header);
  std::unordered_set<std::string> taken(header.begin(), header.end());
  taken.emplace("command");
  for (const std::string& metric : metrics) header.push_back(TakeMetricName(metric, taken));
  header.emplace_back("command");
  std::string csv = CsvLine(header);
  for (const Json& row : result["rows"]) {
    Names fields;
    AddFields(row, place, fields);
    AddFields(row["levels"], factors, fields);
    AddFields(row["verdict"], {"verdict"}, fields);
    fields.push_back(ReasonsText(row["verdict"]));
    AddFields(row["verdict"], {"message"}, fields);
    AddFields(row["metrics"], metrics, fields);
    AddFields(row, {"command"}, fields);
    csv += CsvLine(fields);
  }
  return csv;
}

std::string SummaryCsv(const Json& result) {
  const StudyView study(result);
  const std::string objective = study.objective();
  Names factors, metrics;
  for (const Json& one : result["configurations"]) {
    AddNew(one["levels"], factors);
    AddNew(one["metrics"], metrics);
  }
  std::string csv = CsvLine(SummaryHeader(factors, metrics));
  for (size_t i = 0; i < study.configurations(); ++i) {
    Names fields{std::to_string(i), study.label(i)};
    AddFields(study.configuration(i)["levels"], factors, fields);
    AddFields(study.configuration(i)["trials"], Counts(), fields);
    fields.push_back(objective);
    AddFields(study.Metric(i, objective), Each(), fields);
    AddFields(study.Metric(i, objective), More(), fields);
    AddFields(study.Comparison(i, objective), Ratios(), fields);
    for (const std::string& metric : metrics) AddFields(study.Metric(i, metric), Each(), fields);
    csv += CsvLine(fields);
  }
  return csv;
}

}  // namespace weir::report
