// A SPEC file: which rows to read, what to predict, and what the columns mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "predict/table/expression.h"

namespace weir::predict {

struct Named {
  std::string name;
  Expression expression;
  int line = 0;  // of the SPEC
};

// Where a feature comes from. Rows outside the data differ from the measured ones on one of these sides.
enum class Side { kHardware, kNetwork, kRun, kMachine };

struct Category {
  std::string column;
  Side side = Side::kRun;
};
struct Number {
  Named named;
  Side side = Side::kRun;
};

enum class TargetKind { kTime, kRate };

// A table of facts and the column of the rows that names one of its rows.
struct Join {
  std::string file;       // empty: there is no table, the key is a name only
  std::string key;        // column of the rows
  std::string table_key;  // column of the table; the same name by default
  // Networks only: the category of networks that are alike (a family). Cross-validation leaves out a whole
  // group. Empty: each network is its own group.
  std::string group;
};

struct Spec {
  std::string name;
  std::string rows;                // file in the data folder
  std::string id;                  // column that names a row
  std::optional<Expression> skip;  // rows where it is not 0 are left out of the fit
  std::optional<Join> hardware, networks;

  std::string target;  // column
  TargetKind target_kind = TargetKind::kTime;
  double unit_ms = 1;  // unit of time of the target; a rate is per one such unit
  // The modelled time in ms is unit * per / rate, or unit * time / per.
  std::optional<Expression> per;

  std::vector<Named> derive;            // new columns, in order; later ones may use earlier ones
  std::vector<Named> terms;             // of the physical model, each at least 0, in any unit
  std::vector<Named> least;             // of terms: what physics allows their weights at least, a constant
  std::vector<std::string> physics_by;  // columns; each combination has its own weights
  std::vector<Number> numbers;
  std::vector<Category> categories;
  std::string batch;                // column: items of a step on one device; empty: none
  bool time_is_of_item = false;     // the modelled time is of one item; otherwise of a whole step
  std::string devices;              // column: count of devices; empty: none
  std::vector<std::string> ranges;  // columns whose measured range tells inside from outside
  std::vector<std::string> splits = {"inside", "count", "hardware", "network"};  // cross-validated
  // Empty, or two columns: a device's peak, and the work of the modelled time.
  std::vector<std::string> peaks;
  std::vector<Named> expect;    // 0 in a row: its columns contradict each other
  std::vector<Named> require;   // 0 in a row: it cannot be, and is refused
  std::vector<Named> optional;  // columns that rows may lack, and where their value matters
  // GB that one device must hold, by what they are for, and the GB that it has.
  std::vector<Named> memory;
  std::optional<Expression> memory_capacity;
  std::string source;                      // the YAML text, kept with the predictor
  std::vector<std::string> dropped_terms;  // of the text's terms, those that this fit leaves out

  // Returns the least weight of each term, 0 where none is given.
  std::vector<double> LeastWeights() const;
  // Removes the term from the physical model.
  void DropTerm(const std::string& name);
};

// Returns kInvalidArgument with the line for unknown keys, wrong kinds, expressions that do not parse, a
// derived column that uses itself or a later one, and any key but `skip` that uses the target.
Result<Spec> ParseSpec(std::string_view text);
Result<Spec> ReadSpec(const std::string& path);

}  // namespace weir::predict
