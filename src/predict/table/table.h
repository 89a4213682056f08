// Rows of measurements joined with facts of hardware and networks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "predict/table/expression.h"

namespace weir::predict {

// A Csv with lookup of columns by name and, with a key, of rows. A value.
class Table {
 public:
  Table() = default;
  explicit Table(Csv csv);
  // Makes a table with a key. Returns kInvalidArgument if the column is missing or two rows have one key.
  static Result<Table> WithKey(Csv csv, const std::string& key);

  const Csv& csv() const { return csv_; }
  int64_t rows() const { return csv_.rows(); }
  int Column(std::string_view name) const;    // -1: there is none
  int64_t RowOf(std::string_view key) const;  // -1: there is none
  // Returns at most five keys that begin with `text`, whatever the case, in order; none for an empty text.
  std::vector<std::string> KeysBeginning(std::string_view text) const;
  // Returns " (is it A or B?)" for keys that begin with `text`, or else for the key that is spelt most like
  // it; empty if there is none.
  std::string Suggestion(std::string_view text) const;
  std::string_view Cell(int64_t row, int column) const;
  Value At(int64_t row, int column) const;  // text and number

 private:
  friend struct PredictorFile;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Index = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  Csv csv_;
  std::vector<double> numbers_;  // of the cells; NaN: it is none
  Index columns_, keys_;
};

inline constexpr CsvLimits kTableLimits{.max_cells = 50'000'000};  // 2 GB with their numbers

// Reads a file of at most 256 MiB and 50 million cells. Errors begin with the path.
Result<Csv> ReadCsv(const std::string& path);
// Reads a CSV, or a study's journal if the name ends in .jsonl.
Result<Csv> ReadRows(const std::string& path);

// Adds the column `id` with the numbers of the lines, if the table lacks it.
Csv WithIds(Csv csv, const std::string& id);

}  // namespace weir::predict
