// Half-widths of prediction intervals, by conformal prediction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/seed.h"
#include "predict/estimators/trees.h"

namespace weir::predict {

// Half-widths on the scale of logarithms. Trees learn each row's expected error from left-out rows; the scale
// is set so that the share `coverage` of left-out rows lies within (split conformal prediction with a
// normalised score: Papadopoulos and others 2002; Lei and others 2018, section 5). A value.
class Spread {
 public:
  // `x` is row-major; `misses` are log(predicted / measured). Samples of one `part` stay together when the
  // trees are cross-fitted. Each sample counts as its `importance`, 1 in the mean. The trees' difference
  // counts wholly, half or not at all, by the least interval score. Few samples or no columns: one width.
  struct Learned;
  static Result<Learned> Learn(std::span<const float> x, int columns, std::span<const double> misses,
                               std::span<const double> importance, std::span<const int> parts,
                               double coverage, Seed seed);
  static Spread Constant(double half_width);
  // Returns the same, wider by `factor`.
  Spread Times(double factor) const;

  double HalfWidth(std::span<const float> x) const;

  // Returns whether it takes rows of `columns` numbers.
  bool Takes(int columns) const { return !difficulty_ || difficulty_->columns() == columns; }

 private:
  friend struct PredictorFile;
  double scale_ = 1, greatest_ = 1;  // greatest half-width
  double belief_ = 0;                // in the trees: the power of the expected error
  std::optional<Trees> difficulty_;  // logarithm of the expected error
};

struct Spread::Learned {
  Spread spread;
  std::vector<double> half_widths;  // of the samples, each from other parts
  // The interval score over that of an interval of constant width, on the same samples.
  double score_of_constant = 1;
};

// Returns how much wider an interval must be that was learned from few groups (hardware left out, counts
// above a bound) to hold for another group. The common error of a group was seen once a group, so its share
// goes by Student's t of groups - 1 degrees and the prediction's sqrt(1 + 1 / groups). At most 2; 1 for one
// group. REQUIRES: as many misses as groups.
double ForAnotherGroup(std::span<const double> misses, std::span<const std::string> groups);

}  // namespace weir::predict
