// Rows of measurements joined with facts of hardware and networks.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "predict/expression.h"

namespace weir::predict {

// A Csv whose columns are found by name, and whose rows by a key where it has one. A value.
class Table {
 public:
  Table() = default;
  explicit Table(Csv csv);
  // With `key` as a key: kInvalidArgument where the column is missing, or two rows have the same key.
  static Result<Table> WithKey(Csv csv, const std::string& key);

  const Csv& csv() const { return csv_; }
  int64_t rows() const { return csv_.rows(); }
  int Column(std::string_view name) const;    // -1: there is none
  int64_t RowOf(std::string_view key) const;  // -1: there is none
  // Keys that begin with `text`, whatever the case, in order; at most five. None of an empty text.
  std::vector<std::string> KeysBeginning(std::string_view text) const;
  std::string_view Cell(int64_t row, int column) const;
  Value At(int64_t row, int column) const;  // text and number

  Json ToJson() const;  // columns and rows
  static Result<Table> FromJson(const Json& json, const std::string& key);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Index = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  Csv csv_;
  std::vector<double> numbers_;  // of the cells; NaN: it is none
  Index columns_, keys_;
};

// Reads and parses, 256 MiB and 50 million cells at most; errors begin with the path.
Result<Csv> ReadCsv(const std::string& path);
// The same of a study's journal where the name ends in .jsonl.
Result<Csv> ReadRows(const std::string& path);

// A study's journal as rows: one for each trial, of its last try, in the journal's order. Columns: id,
// attempt, configuration, block, position, role, seed, took_s, verdict; the factors, a map as JSON; the
// metrics, numbers and texts by flat names ({"stages_ms": {"infer": 3}} is stages_ms.infer) as TakeMetricName
// has them; command. What is absent is empty. A last line that is not whole is left out: somebody may be
// writing it. kCorrupt names the line; kNotFound: no trial was played yet.
Result<Csv> ParseTrials(std::string_view journal);

}  // namespace weir::predict
