#include "predict/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "record/journal.h"
#include "record/record.h"

namespace weir::predict {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{256} << 20;
constexpr CsvLimits kTableLimits{.max_cells = 50'000'000};  // 2 GB with their numbers
constexpr size_t kMostAlike = 5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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
  const auto record = TRY_CONTEXT(record::Record::FromJson(found == entry.end() ? Json() : *found), "record");
  attempt.place.emplace_back(ToString(record.verdict.standing));
  for (const auto& [name, level] : record.factors.items()) attempt.factors.emplace_back(name, CellOf(level));
  AddMetrics("", record.metrics, attempt.metrics);
  attempt.command = record.command;
  return attempt;
}

// The last one of each trial, in the order of the journal.
Result<std::vector<Attempt>> LastAttempts(const std::vector<Json>& entries) {
  std::vector<Attempt> last;
  std::unordered_map<std::string, size_t> places;  // by id
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].value("entry", Json()) == "study") continue;
    Attempt attempt = TRY_CONTEXT(ReadAttempt(entries[i]), fmt::format("line {}", i + 1));
    attempt.line = static_cast<int64_t>(i + 1);
    const auto [known, is_new] = places.try_emplace(attempt.place.front(), last.size());
    if (is_new) last.emplace_back();
    last[known->second] = std::move(attempt);
  }
  return last;
}

}  // namespace

Table::Table(Csv csv) : csv_(std::move(csv)) {
  for (size_t i = 0; i < csv_.columns.size(); ++i) columns_.emplace(csv_.columns[i], static_cast<int64_t>(i));
  numbers_.reserve(csv_.cells.size());
  for (const std::string& cell : csv_.cells) {
    numbers_.push_back(cell.empty() ? kNone : ParseNumber(cell).value_or(kNone));
  }
}

Result<Table> Table::WithKey(Csv csv, const std::string& key) {
  Table table(std::move(csv));
  const int column = table.Column(key);
  if (column < 0) return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no column \"{}\"", key));
  for (int64_t row = 0; row < table.rows(); ++row) {
    const std::string name(table.Cell(row, column));
    if (!table.keys_.emplace(name, row).second) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("line {}: {} \"{}\" is there twice", table.csv_.lines[static_cast<size_t>(row)],
                              key, name));
    }
  }
  return table;
}

int Table::Column(std::string_view name) const {
  const auto found = columns_.find(name);
  return found == columns_.end() ? -1 : static_cast<int>(found->second);
}

int64_t Table::RowOf(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? -1 : found->second;
}

std::vector<std::string> Table::KeysBeginning(std::string_view text) const {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  std::vector<std::string> found;
  for (const auto& [key, row] : keys_) {
    if (key.size() >= text.size() &&
        std::ranges::equal(std::string_view(key).substr(0, text.size()), text, {}, lower, lower)) {
      found.push_back(key);
    }
  }
  std::ranges::sort(found);
  if (text.empty()) found.clear();
  if (found.size() > kMostAlike) found.resize(kMostAlike);
  return found;
}

std::string_view Table::Cell(int64_t row, int column) const {
  return csv_.cells[static_cast<size_t>(row) * csv_.columns.size() + static_cast<size_t>(column)];
}

Value Table::At(int64_t row, int column) const {
  const double number =
      numbers_[static_cast<size_t>(row) * csv_.columns.size() + static_cast<size_t>(column)];
  return {.number = std::isnan(number) ? std::nullopt : std::optional(number), .text = Cell(row, column)};
}

Json Table::ToJson() const {
  Json rows = Json::array();
  for (int64_t row = 0; row < csv_.rows(); ++row) {
    Json cells = Json::array();
    for (const std::string& cell : csv_.row(row)) cells.push_back(cell);
    rows.push_back(std::move(cells));
  }
  return {{"columns", csv_.columns}, {"rows", std::move(rows)}};
}

Result<Table> Table::FromJson(const Json& json, const std::string& key) {
  Csv csv;
  const auto strings = [](const Json& list, std::vector<std::string>& to) {
    if (!list.is_array()) return false;
    for (const Json& item : list) {
      if (!item.is_string()) return false;
      to.push_back(item.get<std::string>());
    }
    return true;
  };
  if (!json.is_object() || !json.contains("columns") || !json.contains("rows") || !json["rows"].is_array() ||
      !strings(json["columns"], csv.columns)) {
    return Fail(ErrorCode::kCorrupt, "a table wants \"columns\" and \"rows\"");
  }
  for (const Json& row : json["rows"]) {
    const size_t before = csv.cells.size();
    if (!strings(row, csv.cells) || csv.cells.size() - before != csv.columns.size()) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("row {} of a table is not as long as its columns", csv.rows() + 1));
    }
    csv.lines.push_back(csv.rows() + 2);
  }
  return WithKey(std::move(csv), key);
}

Result<Csv> ReadCsv(const std::string& path) {
  const Bytes bytes = TRY(ReadFile(path, kMaxTableBytes));
  return TRY_CONTEXT(ParseCsv(bytes.text(), kTableLimits), path);
}

Result<Csv> ReadRows(const std::string& path) {
  if (!path.ends_with(".jsonl")) return ReadCsv(path);
  const Bytes bytes = TRY(ReadFile(path, kMaxTableBytes));
  return TRY_CONTEXT(ParseTrials(bytes.text()), path);
}

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

}  // namespace weir::predict
