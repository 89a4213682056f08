#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/utf8.h"

namespace weir {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Reader {
 public:
  Reader(std::string_view text, const CsvLimits& limits) : text_(text), limits_(limits) {}

  Result<Csv> Read() {
    if (text_.starts_with(kByteOrderMark)) at_ = line_begin_ = 3;
    TRY_STATUS(ReadRow(csv_.columns, limits_.max_columns));
    TRY_STATUS(CheckHeader());
    const auto width = std::ssize(csv_.columns);
    while (!OnlyLineEndsFollow()) {
      if (csv_.rows() == limits_.max_rows) {
        return Refuse(fmt::format("more than {} rows", limits_.max_rows));
      }
      if (std::ssize(csv_.cells) > limits_.max_cells - width) {
        return Refuse(
            fmt::format("more than {} cells: leave out columns that nothing uses", limits_.max_cells));
      }
      const Place place = PlaceHere();
      const int64_t before = std::ssize(csv_.cells);
      TRY_STATUS(ReadRow(csv_.cells, before + width));
      if (const int64_t got = std::ssize(csv_.cells) - before; got != width) {
        return RefuseAt(place, fmt::format("{} fields where the header has {}", got, width));
      }
      csv_.lines.push_back(place.line);
    }
    return std::move(csv_);
  }

 private:
  bool Ended() const { return at_ >= text_.size(); }
  char Here() const { return text_[at_]; }
  bool AtLineEnd() const { return Here() == '\n' || text_.substr(at_).starts_with("\r\n"); }

  struct Place {
    int64_t line = 1;
    size_t column = 1;
  };
  Place PlaceHere() const { return {line_, at_ - line_begin_ + 1}; }

  static std::unexpected<Error> RefuseAt(Place place, std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("line {}, column {}: {}", place.line, place.column, what));
  }
  std::unexpected<Error> Refuse(std::string_view what) const { return RefuseAt(PlaceHere(), what); }

  void PassLineEnd() {
    at_ += Here() == '\r' ? 2 : 1;
    ++line_;
    line_begin_ = at_;
  }

  bool OnlyLineEndsFollow() const { return text_.find_first_not_of("\r\n", at_) == std::string_view::npos; }

  // Appends the fields of one row; no more than until `cells` has `most`.
  Status ReadRow(std::vector<std::string>& cells, int64_t most) {
    const bool header = &cells == &csv_.columns;
    while (true) {
      if (std::ssize(cells) == most) {
        return Refuse(fmt::format("more fields than the {} that {}", header ? most : Width(),
                                  header ? "a table may have" : "the header has"));
      }
      if (header) names_.push_back(PlaceHere());
      cells.emplace_back();
      TRY_STATUS(ReadField(cells.back()));
      if (cells.back().starts_with('\'')) cells.back() = std::string(Armed(cells.back()));
      if (Ended()) return {};
      if (AtLineEnd()) {
        PassLineEnd();
        return {};
      }
      ++at_;  // the comma
    }
  }

  int64_t Width() const { return std::ssize(csv_.columns); }

  Status ReadField(std::string& cell) {
    if (!Ended() && Here() == '"') return ReadQuoted(cell);
    while (!Ended() && Here() != ',' && !AtLineEnd()) {
      if (Here() == '"') return Refuse("a quote inside a field that does not begin with one");
      TRY_STATUS(TakeCharacter(cell));
    }
    return {};
  }

  Status ReadQuoted(std::string& cell) {
    const Place opened = PlaceHere();
    ++at_;
    while (true) {
      if (Ended()) return RefuseAt(opened, "the quote that opens here is not closed");
      if (text_.substr(at_).starts_with("\"\"")) {
        cell += '"';
        at_ += 2;
      } else if (Here() == '"') {
        ++at_;
        if (Ended() || Here() == ',' || AtLineEnd()) return {};
        return Refuse("text after a closing quote; a comma or the end of the line belongs here");
      } else if (AtLineEnd()) {
        cell.append(text_, at_, Here() == '\r' ? 2 : 1);
        PassLineEnd();
      } else {
        TRY_STATUS(TakeCharacter(cell));
      }
      if (std::ssize(cell) > limits_.max_cell_bytes) return TooLong();
    }
  }

  Status TakeCharacter(std::string& cell) {
    const auto byte = static_cast<unsigned char>(Here());
    if ((byte < 0x20 && byte != '\t') || byte == 0x7F) {
      return Refuse(
          fmt::format("a control character (0x{:02x}): this is not text, or has line ends that are "
                      "neither LF nor CRLF",
                      byte));
    }
    const size_t length = Utf8Length(text_.substr(at_));
    if (length == 0) return Refuse(fmt::format("a byte (0x{:02x}) that is not UTF-8", byte));
    cell.append(text_, at_, length);
    at_ += length;
    return std::ssize(cell) > limits_.max_cell_bytes ? TooLong() : Status();
  }

  Status TooLong() const {
    return Refuse(fmt::format("a field of more than {} bytes", limits_.max_cell_bytes));
  }

  Status CheckHeader() {
    if (csv_.columns.size() == 1 && csv_.columns.front().empty()) {
      return RefuseAt({}, "the table is empty: it has no header");
    }
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < csv_.columns.size(); ++i) {
      const std::string& name = csv_.columns[i];
      if (!name.empty() && seen.insert(name).second) continue;
      return RefuseAt(names_[i],
                      fmt::format("field {} of the header {}", i + 1,
                                  name.empty() ? "has no name" : "\"" + name + "\" is there twice"));
    }
    return {};
  }

  const std::string_view text_;
  const CsvLimits limits_;
  size_t at_ = 0, line_begin_ = 0;
  int64_t line_ = 1;
  std::vector<Place> names_;  // where each field of the header begins
  Csv csv_;
};

// Also behind apostrophes.
bool BeginsFormula(std::string_view cell) {
  const size_t first = cell.find_first_not_of('\'');
  return first != std::string_view::npos && std::string_view("=+-@\t\r").contains(cell[first]);
}

bool IsNumber(std::string_view cell) {
  const std::string_view digits = cell.starts_with('+') ? cell.substr(1) : cell;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return end == digits.data() + digits.size() && error != std::errc::invalid_argument &&
         !cell.starts_with("+-");
}

}  // namespace

Result<Csv> ParseCsv(std::string_view text, const CsvLimits& limits) { return Reader(text, limits).Read(); }

std::string Defused(std::string_view cell) {
  return BeginsFormula(cell) && !IsNumber(cell) ? "'" + std::string(cell) : std::string(cell);
}

std::string_view Armed(std::string_view cell) {
  return cell.starts_with('\'') && BeginsFormula(cell) ? cell.substr(1) : cell;
}

std::string CsvLine(std::span<const std::string> cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    const std::string cell = Defused(cells[i]);
    // A lone empty cell would read as an empty line, a byte order mark in front as none of the table's.
    if (cell.find_first_of(",\"\r\n") == std::string::npos && (cells.size() > 1 || !cell.empty()) &&
        !cell.starts_with(kByteOrderMark)) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  return line + '\n';
}

Csv PickRows(const Csv& csv, std::span<const int64_t> rows) {
  Csv picked{.columns = csv.columns, .cells = {}, .lines = {}};
  for (const int64_t row : rows) {
    const auto cells = csv.row(row);
    picked.cells.insert(picked.cells.end(), cells.begin(), cells.end());
    picked.lines.push_back(csv.lines[static_cast<size_t>(row)]);
  }
  return picked;
}

Csv WithColumn(Csv csv, const std::string& column, const std::string& text) {
  const size_t before = csv.columns.size();
  const auto place = static_cast<size_t>(std::ranges::find(csv.columns, column) - csv.columns.begin());
  if (place == before) csv.columns.push_back(column);
  std::vector<std::string> cells;
  for (size_t i = 0; i < csv.cells.size(); ++i) {
    cells.push_back(i % before == place ? text : std::move(csv.cells[i]));
    if (place == before && i % before + 1 == before) cells.push_back(text);
  }
  csv.cells = std::move(cells);
  return csv;
}

std::string TakeMetricName(std::string metric, std::unordered_set<std::string>& taken) {
  while (metric.empty() || !taken.insert(metric).second) metric.insert(0, "measured_");
  return metric;
}

Result<double> ParseNumber(std::string_view cell) {
  const std::string_view digits = cell.starts_with('+') ? cell.substr(1) : cell;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is beyond what a number can hold", cell.substr(0, 60)));
  }
  if (error != std::errc() || end != digits.data() + digits.size() || cell.starts_with("+-")) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a number", cell.substr(0, 60)));
  }
  if (!std::isfinite(value)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is not a finite number", cell.substr(0, 60)));
  }
  return value;
}

}  // namespace weir
