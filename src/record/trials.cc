#include "record/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "record/journal.h"
#include "results/trial_result.h"

namespace weir::record {
namespace {

std::unexpected<Error> Corrupt(std::string what) { return Fail(ErrorCode::kCorrupt, std::move(what)); }

std::string CellOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

// Numbers and texts alone, as in a study's report.
void AddMetrics(const std::string& prefix, const Json& metrics, Trial::Cells& cells) {
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

Result<Trial> ReadTrial(const Json& entry) {
  if (entry.value("entry", Json()) != "trial")
    return Corrupt("not the line of a trial: of .jsonl a study's journal is read; give other rows as a CSV");
  Trial trial;
  for (const char* key : kPlace) {
    const auto found = entry.find(key);
    if (found == entry.end() || !(found->is_number() || found->is_string()))
      return Corrupt(fmt::format("key \"{}\" is missing, or is neither a number nor a text", key));
    trial.place.push_back(CellOf(*found));
  }
  const auto found = entry.find("record");
  const auto record =
      TRY_CONTEXT(results::TrialResult::FromJson(found == entry.end() ? Json() : *found), "record");
  trial.standing = record.verdict.standing;
  trial.place.emplace_back(ToString(trial.standing));
  for (const auto& [name, level] : record.factors.items()) trial.factors.emplace_back(name, CellOf(level));
  AddMetrics("", record.metrics, trial.metrics);
  trial.command = record.command;
  return trial;
}

}  // namespace

Result<std::vector<Trial>> LastTrials(std::string_view journal) {
  const std::vector<Json> entries = TRY(ParseJournal(journal)).entries;
  std::vector<Trial> last;
  std::unordered_map<std::string, size_t> places;  // by id
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].value("entry", Json()) == "study") continue;
    Trial trial = TRY_CONTEXT(ReadTrial(entries[i]), fmt::format("line {}", i + 1));
    trial.line = static_cast<int64_t>(i + 1);
    const auto [known, is_new] = places.try_emplace(trial.place.front(), last.size());
    if (is_new)
      last.push_back(std::move(trial));
    else if (trial.standing <= last[known->second].standing)
      last[known->second] = std::move(trial);
  }
  return last;
}

Result<Csv> ParseTrials(std::string_view journal, const CsvLimits& limits) {
  const std::vector<Trial> trials = TRY(LastTrials(journal));
  if (trials.empty()) return Fail(ErrorCode::kNotFound, "no trial was played yet");
  Csv csv{.columns = {std::begin(kPlace), std::end(kPlace)}, .cells = {}, .lines = {}};
  csv.columns.emplace_back("verdict");
  std::unordered_set<std::string> taken(csv.columns.begin(), csv.columns.end());
  taken.emplace("command");
  // The factors of all trials come before any metric, which may be called like one.
  struct Part {
    Trial::Cells Trial::* cells;
    std::unordered_map<std::string, size_t> columns;
  };
  Part parts[] = {{&Trial::factors, {}}, {&Trial::metrics, {}}};
  for (auto& [cells, columns] : parts) {
    for (const Trial& trial : trials) {
      for (const auto& [name, cell] : trial.*cells) {
        if (columns.try_emplace(name, csv.columns.size()).second)
          csv.columns.push_back(TakeMetricName(name, taken));
      }
    }
  }
  csv.columns.emplace_back("command");
  const auto width = std::ssize(csv.columns);
  if (width > limits.max_columns || width * std::ssize(trials) > limits.max_cells) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} trials with {} columns: more than {} columns or {} cells; give a CSV without "
                            "columns that nothing uses",
                            trials.size(), width, limits.max_columns, limits.max_cells));
  }
  for (const Trial& trial : trials) {
    const size_t begin = csv.cells.size();
    csv.cells.insert(csv.cells.end(), trial.place.begin(), trial.place.end());
    csv.cells.resize(begin + csv.columns.size());
    for (const auto& [cells, columns] : parts) {
      for (const auto& [name, cell] : trial.*cells) csv.cells[begin + columns.at(name)] = cell;
    }
    csv.cells.back() = trial.command;
    csv.lines.push_back(trial.line);
  }
  return csv;
}

}  // namespace weir::record
