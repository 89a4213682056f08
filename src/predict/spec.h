// What a SPEC file asks: which rows, what is to be predicted, and what the columns mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "predict/expression.h"

namespace weir::predict {

struct Named {
  std::string name;
  Expression expression;
  int line = 0;  // of the SPEC
};

// Where a feature comes from. What may be outside the data is known by it: a model that never sees kHardware
// cannot go wrong on new hardware by what it made of data-sheet columns.
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
  std::string file;       // empty: no table, the key is a name only
  std::string key;        // the column of the rows
  std::string table_key;  // the column of the table; the same name unless said
  // Of networks: the category by which they are alike. One that was never seen is rehearsed without all that
  // are like it. Empty: each by itself.
  std::string kin;
};

struct Spec {
  std::string name;
  std::string rows;                // a file of the data folder
  std::string id;                  // the column that names a row
  std::optional<Expression> skip;  // rows for which it is not 0 are left out of the fit
  std::optional<Join> hardware, networks;

  std::string target;  // column
  TargetKind target_kind = TargetKind::kTime;
  double unit_ms = 1;  // the target's unit of time; a rate is of one such
  // What is modelled: a time in ms per `per`. Of a rate r it is unit per / r, of a time t unit t / per.
  std::optional<Expression> per;

  std::vector<Named> derive;  // columns to be worked out, in order; later ones may use earlier ones
  std::vector<Named> terms;   // of the physical model, each a time >= 0 in any unit
  std::vector<std::string>
      physics_by;  // columns: each combination gets weights of its own, pulled to the common ones
  std::vector<Number> numbers;
  std::vector<Category> categories;
  std::string batch;                // column of the items of a step on one device; empty: none
  bool time_is_of_item = false;     // of one item on one device; otherwise of a whole step
  std::string devices;              // column of the count of devices; empty: none
  std::vector<std::string> ranges;  // columns and derived ones whose range says whether a row is inside
  std::vector<std::string> questions = {"inside", "count", "hardware", "network"};  // rehearsed
  // None, or two: the column of a device's peak, and of the modelled time's work; more work a second than
  // the peak is impossible.
  std::vector<std::string> peaks;
  std::string source;  // the YAML text itself, kept with the predictor
};

// kInvalidArgument with the line for unknown keys, wrong kinds, expressions that do not parse, a derived
// column that is worked out of itself or of one below it, and whatever but `skip` looks at the target.
Result<Spec> ParseSpec(std::string_view text);
Result<Spec> ReadSpec(const std::string& path);

}  // namespace weir::predict
