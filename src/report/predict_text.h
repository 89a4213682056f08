// The answers of `weir predict`, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "results/predict_result.h"

namespace weir::report {

// The columns of a row that name its hardware and its batch; empty where the predictor has none.
struct AnswerColumns {
  std::string hardware, batch;
};

// Returns a line, with the job below it, for one answer, and a table for several.
std::string AnswersText(const results::PredictAnswers& answers, const AnswerColumns& columns);

// Returns a line for each engine; one alone has no name before it, so that a shell can take it.
std::string EnginesText(const results::PredictEngines& engines);
// Returns how close each engine is to the predicted times, and which of its batches are outside the data.
std::vector<std::string> EngineNotes(const results::PredictEngines& engines);

}  // namespace weir::report
