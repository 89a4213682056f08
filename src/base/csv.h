// Comma-separated values, read strictly: whatever is not plainly a table is refused with its line and column.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace weir {

struct CsvLimits {
  int64_t max_columns = 10'000;
  int64_t max_rows = 5'000'000;
  int64_t max_cells = INT64_MAX;  // each takes 32 bytes of memory, an empty one, too
  int64_t max_cell_bytes = 64 << 10;
};

// A header and rows of as many cells. Row-major: cells[row * columns.size() + column].
struct Csv {
  std::vector<std::string> columns;  // names, each once, none empty
  std::vector<std::string> cells;
  std::vector<int64_t> lines;  // of the text, from 1, where each row begins

  int64_t rows() const { return std::ssize(lines); }
  std::span<const std::string> row(int64_t index) const {
    return std::span(cells).subspan(static_cast<size_t>(index) * columns.size(), columns.size());
  }
};

// Parses RFC 4180 in UTF-8: commas, LF or CRLF, fields in quotes with "" for a quote. A byte order mark in
// front and empty lines at the end are skipped. Cells are as they were before Defused. kInvalidArgument "line
// L, column C: ..." (C counts bytes from 1) names the first fault:
// - a row of another length than the header; a name that is empty or there twice; an empty file
// - a quote that is not closed or stands inside a bare field; text after a closing quote
// - control characters (a binary file); bytes that are not UTF-8
// - a size beyond `limits`
Result<Csv> ParseCsv(std::string_view text, const CsvLimits& limits = {});

// One line with its newline; cells are quoted, and formulas defused, where they need it, so ParseCsv gives
// the same cells again. REQUIRES: cells without control characters other than CR, LF and tab.
std::string CsvLine(std::span<const std::string> cells);

// Returns those rows, in this order.
Csv PickRows(const Csv& csv, std::span<const int64_t> rows);

// Sets the column to one text in every row. Adds the column if the table lacks it.
Csv WithColumn(Csv csv, const std::string& column, const std::string& text);

// Spreadsheets run a cell that begins with = + - @, tab or CR as a formula, and files are named by strangers.
// Returns `cell` with an apostrophe in front where it begins so, and where apostrophes stand before such a
// character, so that Armed gives the same cell again; numbers ("-0.5") and all else as they are.
std::string Defused(std::string_view cell);
// Returns `cell` without the apostrophe that Defused put in front. ParseCsv does this to every cell.
std::string_view Armed(std::string_view cell);

// Returns the name of a metric's column if `taken` are the columns before it: `metric`, or measured_METRIC
// where one of them has that name (what was set beside what was measured: the pictures asked for, and those
// that came). Becomes one of `taken`; never empty.
std::string TakeMetricName(std::string metric, std::unordered_set<std::string>& taken);

// A whole cell as a finite decimal number ("1e3", "-0.5"). kInvalidArgument for anything else, and for what
// is too large for a double.
Result<double> ParseNumber(std::string_view cell);

}  // namespace weir
