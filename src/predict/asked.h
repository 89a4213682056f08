// Rows that a person asks for by flags: one, or a table over hardware and batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "predict/predictor.h"
#include "results/model_result.h"
#include "results/predict_result.h"

namespace weir::predict {

struct AskedRows {
  std::vector<std::string> gpus, set, prices;
  std::string network;
  std::vector<int> batches;
  int devices = 0;          // 0: not said
  int nodes = 0;            // 0: not given
  double network_gbit = 0;  // 0: not given
  int64_t items = 0;        // 0: no job is asked for
  double epochs = 0;        // 0: not said, 1
  bool as_engine = false;

  bool any() const {
    return !gpus.empty() || !set.empty() || !prices.empty() || !network.empty() || !batches.empty() ||
           devices > 0 || nodes > 0 || network_gbit > 0 || items > 0 || epochs > 0 || as_engine;
  }
};

// Refuses flags that say nothing together, before any work.
Status CheckAsked(const AskedRows& asked);

struct Answered {
  std::string text;                // for a person
  std::vector<std::string> notes;  // about it
  Json result;                     // results::PredictAnswers or PredictEngines
  bool any = true;                 // false: every row is refused
};

// Gives the facts of an ONNX file or a model folder.
using ModelFactsOf = std::function<Result<results::ModelFacts>(const std::string& path)>;

// Returns the emulated engine of each hardware asked for, over the batches asked for. Adds to `notes`. Errors
// as AnswerRows, and kInvalidArgument for a predictor without hardware.
Result<results::PredictEngines> AnswerEngines(const AskedRows& asked, const Predictor& predictor,
                                              const ModelFactsOf& facts_of, std::vector<std::string>& notes);

// Returns kInvalidArgument with the flag that is missing, or that the predictor has no use for.
Result<Answered> AnswerRows(const AskedRows& asked, const Predictor& predictor, const ModelFactsOf& facts_of);

}  // namespace weir::predict
