// How alike rows must be to tell of one another: weights found by leaving rows out as the question does.
#pragma once

#include <optional>
#include <vector>

#include "predict/estimator.h"
#include "predict/questions.h"

namespace weir::predict {

struct TuneOptions {
  int samples = 200;  // rows that are predicted for a score
  int points = 1500;  // rows they are predicted from, at most
  int count = 40;     // of them for one answer
  int threads = 1;
  Seed seed = Seed(1);
};

// The Likeness with the least error of log(time), by coordinate search from a common start: first the sides
// and the parts, then each dimension, then the sides again. Rows are predicted without those of their fold's
// test side. `values` are what neighbours are to correct (Residuals), one a row.
Likeness TuneLikeness(const Data& data, const std::vector<double>& values, const std::vector<Fold>& folds,
                      const TuneOptions& options);

}  // namespace weir::predict
