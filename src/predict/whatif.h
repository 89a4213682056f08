// Questions of people: one row from settings, a table over hardware and batches, a whole job, its cost, and
// an engine that behaves so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/predictor.h"

namespace weir::predict {

// A row as settings: column to text.
using Settings = std::map<std::string, std::string>;

// "column=value". kInvalidArgument for anything else, and for a column set twice.
Result<Settings> ParseSettings(const std::vector<std::string>& texts);

// The rows as a table with an id column; all settings of all rows are columns.
Result<Table> MakeTable(const Spec& spec, const std::vector<Settings>& rows);

// Every combination of the lists, first list slowest, each over `base`.
std::vector<Settings> Combine(const Settings& base,
                              const std::vector<std::pair<std::string, std::vector<std::string>>>& lists);

// The key of `table` that `text` means: the only one that begins with it, whatever the case ("h100-sxm" for
// H100-SXM5-80GB), or the text itself where it is a key or no key begins so. kInvalidArgument, with the keys,
// where several do.
Result<std::string> KeyMeant(const Table& table, const std::string& text, std::string_view what);

// The keys of the network table whose numbers are those of `facts` within 2 %, all that both have and three
// at least: what an ONNX file may be, that does not say its name.
std::vector<std::string> NetworksAlike(const Spec& spec, const Table& networks, const Settings& facts);

// kInvalidArgument where a setting is no column that the predictor looks at: it would change nothing.
Status CheckSettings(const Spec& spec, const Settings& row);
// Columns that the predictor looks at and that neither the row nor the tables of facts have: they are taken
// as unknown.
std::vector<std::string> Unsaid(const Predictor& predictor, const Settings& row);

struct Job {
  double items = 0;  // of one epoch
  double epochs = 1;
  std::optional<double> price_per_hour;  // of one device
};
struct JobAnswer {
  double hours = 0, low = 0, high = 0;
  std::optional<double> cost, low_cost, high_cost;
};
// The time of a whole job: items x epochs x the time of an item, by all devices. kInvalidArgument where the
// prediction was refused, the spec does not say what its time is of, or a figure is not finite and above 0.
Result<JobAnswer> TimeOfJob(const Spec& spec, const Settings& row, const Prediction& prediction,
                            const Job& job);

// "emulated:base=1.2ms,per_item=0.34ms,batch=32": the line of least relative error through the predicted
// time of a step against its batch, neither part negative, and how far it is off at most. kInvalidArgument
// for fewer than two different batches, for a row of more than one device, and where one is refused.
struct EmulatedEngine {
  std::string text;
  double base_ms = 0, per_item_ms = 0;
  double greatest_error = 0;  // relative
  int64_t outside = 0;        // of the batches: predictions outside the data
  std::string why;            // of the first of them
};
Result<EmulatedEngine> AsEngine(const Predictor& predictor, const Settings& row,
                                const std::vector<int>& batches);

// "62 % memory, 30 % tensor, 8 % launch": shares of the physical terms, largest first, those under 1 % left
// out.
std::string ShareText(const Spec& spec, const Prediction& prediction);

}  // namespace weir::predict
