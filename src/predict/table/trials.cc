#include "predict/table/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "predict/table/table.h"
#include "record/journal.h"
#include "results/trial_result.h"

namespace weir::predict {
namespace {

constexpr std::string_view kTarget = "throughput_images_per_s";

std::unexpected<Error> Corrupt(std::string what) { return Fail(ErrorCode::kCorrupt, std::move(what)); }

std::string CellOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

using Cells = std::vector<std::pair<std::string, std::string>>;  // by name

// Numbers and texts alone, as in a study's report.
void AddMetrics(const std::string& prefix, const Json& metrics, Cells& cells) {
  for (const auto& [key, value] : metrics.items()) {
    std::string name = prefix + key;
    if (value.is_object()) {
      AddMetrics(name + ".", value, cells);
    } else if (value.is_number() || value.is_string()) {
      cells.emplace_back(std::move(name), CellOf(value));
    }
  }
}

constexpr const char* kPlace[] = {"id",       "attempt", "configuration", "block",
                                  "position", "role",    "seed",          "took_s"};

// A try of a trial, as its line in the journal has it.
struct Attempt {
  int64_t line = 0;
  std::vector<std::string> place;  // as kPlace, then the verdict
  results::Standing standing = results::Standing::kFailed;
  Cells factors, metrics;
  std::string command;
};

Result<Attempt> ReadAttempt(const Json& entry) {
  if (entry.value("entry", Json()) != "trial")
    return Corrupt("not the line of a trial: of .jsonl a study's journal is read; give other rows as a CSV");
  Attempt attempt;
  for (const char* key : kPlace) {
    const auto found = entry.find(key);
    if (found == entry.end() || !(found->is_number() || found->is_string()))
      return Corrupt(fmt::format("key \"{}\" is missing, or is neither a number nor a text", key));
    attempt.place.push_back(CellOf(*found));
  }
  const auto found = entry.find("record");
  const auto record =
      TRY_CONTEXT(results::TrialResult::FromJson(found == entry.end() ? Json() : *found), "record");
  attempt.standing = record.verdict.standing;
  attempt.place.emplace_back(ToString(attempt.standing));
  for (const auto& [name, level] : record.factors.items()) attempt.factors.emplace_back(name, CellOf(level));
  AddMetrics("", record.metrics, attempt.metrics);
  attempt.command = record.command;
  return attempt;
}

// Returns one attempt of each trial, in the order of the journal: the last, unless it went worse than the one
// before it. A study's analysis takes the same.
Result<std::vector<Attempt>> LastAttempts(const std::vector<Json>& entries) {
  std::vector<Attempt> last;
  std::unordered_map<std::string, size_t> places;  // by id
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].value("entry", Json()) == "study") continue;
    Attempt attempt = TRY_CONTEXT(ReadAttempt(entries[i]), fmt::format("line {}", i + 1));
    attempt.line = static_cast<int64_t>(i + 1);
    const auto [known, is_new] = places.try_emplace(attempt.place.front(), last.size());
    if (is_new)
      last.push_back(std::move(attempt));
    else if (attempt.standing <= last[known->second].standing)
      last[known->second] = std::move(attempt);
  }
  return last;
}

}  // namespace

Result<Csv> ParseTrials(std::string_view journal) {
  const auto contents = TRY(record::ParseJournal(journal));
  const std::vector<Attempt> attempts = TRY(LastAttempts(contents.entries));
  if (attempts.empty()) return Fail(ErrorCode::kNotFound, "no trial was played yet");
  Csv csv{.columns = {std::begin(kPlace), std::end(kPlace)}, .cells = {}, .lines = {}};
  csv.columns.emplace_back("verdict");
  std::unordered_set<std::string> taken(csv.columns.begin(), csv.columns.end());
  taken.emplace("command");
  // The factors of all trials come before any metric, which may be called like one.
  struct Part {
    Cells Attempt::* cells;
    std::unordered_map<std::string, size_t> columns;
  };
  Part parts[] = {{&Attempt::factors, {}}, {&Attempt::metrics, {}}};
  for (auto& [cells, columns] : parts) {
    for (const Attempt& attempt : attempts) {
      for (const auto& [name, cell] : attempt.*cells) {
        if (columns.try_emplace(name, csv.columns.size()).second)
          csv.columns.push_back(TakeMetricName(name, taken));
      }
    }
  }
  csv.columns.emplace_back("command");
  const auto width = std::ssize(csv.columns);
  if (width > kTableLimits.max_columns || width * std::ssize(attempts) > kTableLimits.max_cells) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} trials with {} columns: more than {} columns or {} cells; give a CSV without "
                            "columns that nothing uses",
                            attempts.size(), width, kTableLimits.max_columns, kTableLimits.max_cells));
  }
  for (const Attempt& attempt : attempts) {
    const size_t begin = csv.cells.size();
    csv.cells.insert(csv.cells.end(), attempt.place.begin(), attempt.place.end());
    csv.cells.resize(begin + csv.columns.size());
    for (const auto& [cells, columns] : parts) {
      for (const auto& [name, cell] : attempt.*cells) csv.cells[begin + columns.at(name)] = cell;
    }
    csv.cells.back() = attempt.command;
    csv.lines.push_back(attempt.line);
  }
  return csv;
}

Result<std::string> SpecOfTrials(std::string_view journal, const std::string& name) {
  const auto contents = TRY(record::ParseJournal(journal));
  std::map<std::string, std::set<std::string>> factors;
  bool has_target = false;
  for (const Attempt& attempt : TRY(LastAttempts(contents.entries))) {
    for (const auto& [factor, level] : attempt.factors) factors[factor].insert(level);
    has_target = has_target || std::ranges::any_of(attempt.metrics, [](const auto& metric) {
                   return metric.first == kTarget;
                 });
  }
  std::erase_if(factors, [](const auto& factor) { return factor.second.size() < 2; });
  if (factors.empty() || !has_target)
    return Fail(ErrorCode::kInvalidArgument,
                has_target ? "no factor of the study has two levels: there is nothing to learn"
                           : fmt::format("no trial of the study has {}", kTarget));
  std::string terms = "each: 1", numbers, categories;
  for (const auto& [factor, levels] : factors) {
    const bool is_number = std::ranges::all_of(levels, [](const std::string& level) {
      const auto number = ParseNumber(level);
      return number && *number > 0;
    });
    const auto add = [&](std::string& list) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", factor);
    };
    add(is_number ? numbers : categories);
    if (is_number) terms += fmt::format(", {0}: '{0} ?? 1', {0}_inverse: '1 / ({0} ?? 1)'", factor);
  }
  std::string spec = fmt::format(
      "predict: \"{}\"\nrows: journal.jsonl\nid: id\nskip: role != 'trial' or verdict == 'INVALID'\n"
      "target: {{column: {}, kind: rate}}\nof: item\nterms: {{{}}}\nsplits: [inside]\n"
      "numbers: {{run: {}}}\n",
      name, kTarget, terms, numbers.empty() ? "{one: 1}" : "[" + numbers + "]");
  if (!numbers.empty()) spec += fmt::format("ranges: [{}]\n", numbers);
  if (!categories.empty()) spec += fmt::format("physics_by: [{0}]\ncategories: {{run: [{0}]}}\n", categories);
  return spec;
}

}  // namespace weir::predict
