// Rows as numbers: what the estimators see of a measurement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "predict/spec.h"
#include "predict/table.h"

namespace weir::predict {

// Of the logarithm of a time in ms, either way: e^100 ms are 10^32 years.
inline constexpr double kMostLogTime = 100;

// One measurement or question. A value.
struct Row {
  std::string id;
  int64_t place = 0;                    // in its table, from 0
  std::string problem;                  // why it cannot be used; empty: it can
  std::optional<double> time;           // ms, measured
  double per = 1;                       // target's divisor (a time) or dividend (a rate)
  std::vector<double> terms;            // as Spec::terms
  std::vector<double> numbers;          // as Spec::numbers; NaN: unknown
  std::vector<std::string> categories;  // as Spec::categories
  std::vector<double> ranges;           // as Spec::ranges; NaN: unknown
  std::vector<double> peaks;            // as Spec::peaks
  std::string hardware, network;        // keys; empty where the spec joins none
  std::string kin;                      // of the network, by Join::kin; itself where that says nothing
  std::string group;                    // of the physical model's weights
  double devices = 1;
};

// The facts that rows are joined with.
struct Facts {
  Table hardware, networks;
};

// Joins and works out every row of `rows`. A row that cannot be used (its hardware is not in the table, a
// term is unknown or negative) says so in `problem`; the others are not touched by it. With `want_target` a
// row without a target above 0 has a problem too. kInvalidArgument where the table itself lacks a column
// that every row needs: the id, a key, or the target that is wanted.
enum class WithTarget { kYes, kNo };
Result<std::vector<Row>> MakeRows(const Spec& spec, const Facts& facts, const Table& rows, WithTarget with);

// Holds every name of the spec against the tables, for a fit: what is asked later may lack a column (it is
// unknown then), but a name that no table has is a slip of the pen. kInvalidArgument tells the key of the
// spec.
Status CheckNames(const Spec& spec, const Facts& facts, const Table& rows);

// The columns that a row may bring, or a table of facts: the keys, and what the spec's expressions and lists
// name but do not derive. Sorted.
std::vector<std::string> ColumnsOf(const Spec& spec);

// Which rows of `rows` the spec skips.
std::vector<bool> SkippedRows(const Spec& spec, const Facts& facts, const Table& rows);

// The target (in its own column's unit) from a time in ms, and back.
double TargetFromTime(const Spec& spec, const Row& row, double time_ms);

// How numbers become coordinates, learned from the rows of the fit: logarithms where all are above 0, then
// divided by their standard deviation; categories become codes. A value.
class Encoder {
 public:
  static Encoder Learn(const Spec& spec, const std::vector<Row>& rows);

  // Coordinates of row: as numbers; NaN where unknown.
  std::vector<float> Coordinates(const Row& row) const;
  // Codes of categories; -1 for one that the fit never saw.
  std::vector<int> Codes(const Row& row) const;
  size_t numbers() const { return scales_.size(); }
  size_t categories() const { return levels_.size(); }
  std::vector<std::string> Levels(size_t category) const;  // by their codes
  std::vector<std::string> MostCommon(size_t category, size_t most) const;
  bool Knows(size_t category, const std::string& level) const { return levels_[category].contains(level); }
  int levels(size_t category) const { return static_cast<int>(levels_[category].size()); }
  // Rows of the fit that have this code.
  int64_t Count(size_t category, int code) const { return counts_[category][static_cast<size_t>(code)]; }

  Json ToJson() const;
  static Result<Encoder> FromJson(const Json& json);

 private:
  struct Scale {
    bool log = false;
    double mean = 0, deviation = 1;
  };
  std::vector<Scale> scales_;
  std::vector<std::map<std::string, int>> levels_;
  std::vector<std::vector<int64_t>> counts_;
};

}  // namespace weir::predict
