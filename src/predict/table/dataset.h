// Rows of measurements joined with facts, and what the SPEC derives from them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "predict/table/spec.h"
#include "predict/table/table.h"

namespace weir::predict {

// Greatest absolute logarithm of a time in ms: e^100 ms are 10^32 years.
inline constexpr double kMostLogTime = 100;

// One measurement, or one row to predict. A value.
struct Row {
  std::string id;
  int64_t place = 0;                    // in its table, from 0
  std::string problem;                  // why it cannot be used; empty: it can
  std::optional<double> time;           // ms, measured
  double per = 1;                       // the target's divisor (a time) or dividend (a rate)
  std::vector<double> terms;            // as Spec::terms
  std::vector<double> numbers;          // as Spec::numbers; NaN: unknown
  std::vector<std::string> categories;  // as Spec::categories
  std::vector<double> ranges;           // as Spec::ranges; NaN: unknown
  std::vector<double> peaks;            // as Spec::peaks
  std::vector<double> memory;           // GB, as Spec::memory; NaN: unknown
  double memory_capacity = 0;           // GB; NaN: unknown
  std::string hardware, network;        // keys; empty where the spec joins none
  std::string vendor;                   // of the hardware, if a column "vendor" is known
  std::string network_group;            // Join::group; without it, networks with the same facts
  std::string group;                    // of the physical model's weights
  double devices = 1;
  std::vector<std::string> missing;         // Spec::optional columns that matter here and are unknown
  std::vector<std::string> contradictions;  // Spec::expect that are 0 here
};

// The tables that rows are joined with.
struct Facts {
  Table hardware, networks;
};

// Joins every row of `rows` with its facts and evaluates the spec's expressions. A row that cannot be used
// says why in `problem`; other rows are not affected. With WithTarget::kYes, a row without a target above 0
// has a problem too. Returns kInvalidArgument if the table lacks the id, a key, or the wanted target.
enum class WithTarget { kYes, kNo };
Result<std::vector<Row>> MakeRows(const Spec& spec, const Facts& facts, const Table& rows, WithTarget with);

// Checks, for a fit, that every name of the spec is a column of a table, derived, or optional. Returns
// kInvalidArgument with the key of the spec.
Status CheckNames(const Spec& spec, const Facts& facts, const Table& rows);

// Returns the columns that a row or a table of facts may provide, sorted.
std::vector<std::string> ColumnsOf(const Spec& spec);

// Returns the columns that `expression` uses, directly or through derived columns.
std::set<std::string> ColumnsBehind(const Spec& spec, const Expression& expression);

// Marks the rows that the spec skips.
std::vector<bool> SkippedRows(const Spec& spec, const Facts& facts, const Table& rows);

// Converts a time in ms to the target, in the unit of its column.
double TargetFromTime(const Spec& spec, const Row& row, double time_ms);

}  // namespace weir::predict
