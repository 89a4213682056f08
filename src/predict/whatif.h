// Calculations of what-if: one row from settings, a table over hardware and batches, a whole job, its cost,
// and an emulated engine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/predictor.h"
#include "results/predict_result.h"

namespace weir::predict {

// A row as settings: column to text.
using Settings = std::map<std::string, std::string>;

// Parses "column=value". Returns kInvalidArgument for other texts and for a column set twice.
Result<Settings> ParseSettings(const std::vector<std::string>& texts);

// Makes a table with an id column; the settings of all rows are its columns.
Result<Table> MakeTable(const Spec& spec, const std::vector<Settings>& rows);

// Returns the only key of `table` that begins with `text`, whatever the case ("h100-sxm" for H100-SXM5-80GB),
// or the text itself if it is a key or no key begins with it. Returns kInvalidArgument with the keys if
// several do.
Result<std::string> KeyMeant(const Table& table, const std::string& text, std::string_view what);

// Returns the keys of networks whose numbers equal those of `facts` within 2 %: all that both have, and at
// least three. An ONNX file does not give its network's name.
std::vector<std::string> NetworksAlike(const Spec& spec, const Table& networks, const Settings& facts);

// Returns kInvalidArgument if the predictor uses no such column: the setting would change nothing.
Status CheckSettings(const Spec& spec, const Settings& row);
// Returns the columns that the predictor uses and that neither the row nor the tables of facts have, but for
// optional ones. They count as unknown.
std::vector<std::string> UnknownColumns(const Predictor& predictor, const Settings& row);

struct Job {
  double items = 0;  // of one epoch
  double epochs = 1;
  std::optional<double> price_per_hour;  // of one device
};
// Returns the time of a whole job: its steps times the time of a step. Returns kInvalidArgument if the
// prediction was refused, the spec names no batch, or a figure is not finite and above 0.
Result<results::PredictAnswers::Job> TimeOfJob(const Spec& spec, const Settings& row,
                                               const Prediction& prediction, const Job& job);

// Returns the line of least relative error through the predicted times of a step against its batch, as
// settings: "emulated:base=1.2ms,per_item=0.34ms,batch=32". Returns kInvalidArgument for fewer than two
// different batches, for more than one device, and if a batch is refused. Two lines more go through the ends
// of the predictions' intervals.
Result<results::PredictEngines::Engine> AsEngine(const Predictor& predictor, const Settings& row,
                                                 const std::vector<int>& batches);

}  // namespace weir::predict
