#include "predict/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "base/file.h"
#include "base/nearest.h"
#include "record/trials.h"

namespace weir::predict {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{256} << 20;
constexpr size_t kMostAlike = 5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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

std::string Table::Suggestion(std::string_view text) const {
  std::vector<std::string> alike = KeysBeginning(text);
  if (alike.empty()) {
    std::vector<std::string_view> keys;
    for (const auto& [key, row] : keys_) keys.push_back(key);
    std::ranges::sort(keys);
    if (const auto nearest = Nearest(text, keys)) alike.push_back(*nearest);
  }
  return alike.empty() ? "" : fmt::format(" (is it {}?)", fmt::join(alike, " or "));
}

std::string_view Table::Cell(int64_t row, int column) const {
  return csv_.cells[static_cast<size_t>(row) * csv_.columns.size() + static_cast<size_t>(column)];
}

Value Table::At(int64_t row, int column) const {
  const double number =
      numbers_[static_cast<size_t>(row) * csv_.columns.size() + static_cast<size_t>(column)];
  return {.number = std::isnan(number) ? std::nullopt : std::optional(number), .text = Cell(row, column)};
}

Result<Csv> ReadCsv(const std::string& path) {
  const Bytes bytes = TRY(ReadFile(path, kMaxTableBytes));
  return TRY_CONTEXT(ParseCsv(bytes.text(), kTableLimits), path);
}

Csv WithIds(Csv csv, const std::string& id) {
  if (std::ranges::find(csv.columns, id) != csv.columns.end()) return csv;
  csv = WithColumn(std::move(csv), id, "");
  for (size_t row = 0; row < csv.lines.size(); ++row)
    csv.cells[(row + 1) * csv.columns.size() - 1] = fmt::format("line {}", csv.lines[row]);
  return csv;
}

Result<Csv> ReadRows(const std::string& path) {
  if (!path.ends_with(".jsonl")) return ReadCsv(path);
  const Bytes bytes = TRY(ReadFile(path, kMaxTableBytes));
  return TRY_CONTEXT(record::ParseTrials(bytes.text(), kTableLimits), path);
}

}  // namespace weir::predict
