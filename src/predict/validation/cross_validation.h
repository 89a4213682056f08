// Estimators tried on rows that their fits did not see.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predict/interval/spread.h"
#include "predict/validation/splits.h"
#include "results/fit_result.h"

namespace weir::predict {

// Scores errors of times as |log(predicted / measured)|, which counts three times too long as three times too
// short. Takes logarithms. REQUIRES: as many of both.
results::FitScore ScoreOf(std::span<const double> log_predicted, std::span<const double> log_measured);

// What fits of one recipe said of the rows they did not see. A row that several folds leave out is there
// several times.
struct CrossValidation {
  std::vector<LeftOut> samples;
  std::vector<double> predicted, measured;  // of the samples, log ms

  results::FitScore Score() const { return predict::ScoreOf(predicted, measured); }
};

struct CrossValidateOptions {
  int threads = 1;
  Seed seed = Seed(1);
};

// Fits the recipe without each fold's test rows, and predicts those.
CrossValidation CrossValidate(const Data& data, Split split, const std::vector<Fold>& folds,
                              const Recipe& recipe, const CrossValidateOptions& options);

}  // namespace weir::predict
