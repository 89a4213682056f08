#include "report/study_csv.h"

#include <algorithm>
#include <vector>

#include "report/escape.h"
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

void AddLine(const Names& fields, std::string& csv) {
  for (size_t i = 0; i < fields.size(); ++i) csv += (i == 0 ? "" : ",") + EscapeCsv(fields[i]);
  csv += "\r\n";
}

std::string ReasonsField(const Json& verdict) {
  std::string text;
  for (const Json& reason : verdict["reasons"])
    text += (text.empty() ? "" : "; ") + reason["reason"].get<std::string>() + ": " +
            reason["evidence"].get<std::string>();
  return text;
}

}  // namespace

std::string ResultsCsv(const Json& result) {
  const Names place{"id",   "attempt", "counts",   "configuration", "label",
                    "role", "block",   "position", "seed",          "took_s"};
  Names factors, metrics;
  for (const Json& row : result["rows"]) {
    AddNew(row["levels"], factors);
    AddNew(row["metrics"], metrics);
  }
  Names header = place;
  header.insert(header.end(), factors.begin(), factors.end());
  for (const char* name : {"verdict", "reasons", "message"}) header.emplace_back(name);
  header.insert(header.end(), metrics.begin(), metrics.end());
  header.emplace_back("command");
  std::string csv;
  AddLine(header, csv);
  for (const Json& row : result["rows"]) {
    Names fields;
    for (const std::string& name : place) fields.push_back(FieldAt(row, name));
    for (const std::string& name : factors) fields.push_back(FieldAt(row["levels"], name));
    fields.push_back(FieldAt(row["verdict"], "verdict"));
    fields.push_back(ReasonsField(row["verdict"]));
    fields.push_back(FieldAt(row["verdict"], "message"));
    for (const std::string& name : metrics) fields.push_back(FieldAt(row["metrics"], name));
    fields.push_back(FieldAt(row, "command"));
    AddLine(fields, csv);
  }
  return csv;
}

std::string SummaryCsv(const Json& result) {
  const StudyView study(result);
  const Names counts{"valid", "suspect", "invalid", "failed", "skipped"};
  const Names each{"n", "mean", "standard_error", "low", "high"};
  const Names more{"standard_deviation", "median", "median_low", "median_high", "min", "max"};
  const Names ratios{"ratio", "low", "high", "smallest_difference", "told"};
  const std::string objective = study.objective();
  Names factors, metrics;
  for (const Json& one : result["configurations"]) {
    AddNew(one["levels"], factors);
    AddNew(one["metrics"], metrics);
  }
  // The objective's own figures have the plain names, so that a reader of the file finds them without knowing
  // which it is.
  Names header{"configuration", "label"};
  header.insert(header.end(), factors.begin(), factors.end());
  for (const std::string& name : counts) header.push_back("trials_" + name);
  header.emplace_back("objective");
  header.insert(header.end(), each.begin(), each.end());
  header.insert(header.end(), more.begin(), more.end());
  for (const std::string& name : ratios) header.push_back("reference_" + name);
  for (const std::string& metric : metrics) {
    for (const std::string& name : each) header.push_back(metric + ":" + name);
  }
  std::string csv;
  AddLine(header, csv);
  for (size_t i = 0; i < study.configurations(); ++i) {
    const Json& one = study.configuration(i);
    Names fields{std::to_string(i), study.label(i)};
    for (const std::string& name : factors) fields.push_back(FieldAt(one["levels"], name));
    for (const std::string& name : counts) fields.push_back(FieldAt(one["trials"], name));
    fields.push_back(objective);
    const auto add = [&fields](const Json& figures, const Names& names) {
      for (const std::string& name : names)
        fields.push_back(figures.is_object() ? FieldAt(figures, name) : "");
    };
    add(study.Metric(i, objective), each);
    add(study.Metric(i, objective), more);
    add(study.Comparison(i, objective), ratios);
    for (const std::string& metric : metrics) add(study.Metric(i, metric), each);
    AddLine(fields, csv);
  }
  return csv;
}

}  // namespace weir::report
