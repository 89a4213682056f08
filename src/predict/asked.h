// Rows that a person asks for by flags: one, or a table over hardware and batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
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

// Gives the facts of an ONNX file or a model folder.
using ModelFactsOf = std::function<Result<results::ModelFacts>(const std::string& path)>;

// Returns the emulated engine of each hardware asked for, over the batches asked for, or 1 to 64. Adds to
// `notes`. Errors as AnswerRows.
Result<results::PredictEngines> AnswerEngines(const AskedRows& asked, const Predictor& predictor,
                                              const ModelFactsOf& facts_of, std::vector<std::string>& notes);

// Returns the answer for each hardware and batch. Adds to `notes` how a model file was taken. Returns
// kInvalidArgument with the flag that is missing, or that the predictor has no use for.
Result<results::PredictAnswers> AnswerRows(const AskedRows& asked, const Predictor& predictor,
                                           const ModelFactsOf& facts_of, std::vector<std::string>& notes);

}  // namespace weir::predict
