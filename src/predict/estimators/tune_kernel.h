// Tunes the weights of a kernel on left-out rows.
#pragma once

#include <optional>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/splits.h"

namespace weir::predict {

struct TuneOptions {
  int samples = 200;  // rows that are predicted for a score
  int points = 1500;  // rows they are predicted from, at most
  int count = 40;     // of them for one answer
  int threads = 1;
  Seed seed = Seed(1);
};

// Returns the Kernel with the least error of log(time), by coordinate search: first the sides and the parts,
// then each dimension, then the sides again. Rows are predicted without the test rows of their fold. `values`
// are the residuals of the common physical model, one a point.
Kernel TuneKernel(const Points& points, const std::vector<double>& values, const std::vector<Fold>& folds,
                  const TuneOptions& options);

}  // namespace weir::predict
