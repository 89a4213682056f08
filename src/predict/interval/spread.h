// Half-widths of prediction intervals, by conformal prediction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/estimators/estimator.h"

namespace weir::predict {

// A row that a fit did not see, and what that fit said of it.
struct LeftOut {
  int row = 0;
  std::string group;    // of rows that were left out together and err alike: one hardware, one network
  double miss = 0;      // log(predicted / measured)
  double variance = 0;  // of the prediction, by its neighbours
};

// Half-widths on the scale of logarithms: scale * exp(d) * variance^(1/4). d is the logarithm of the errors
// of alike rows that were left out, by the same neighbours; the variance grows with the distance from all
// rows. The scale is set so that the share `coverage` of left-out rows lies within (split conformal
// prediction with a normalised score: Papadopoulos and others 2002; Lei and others 2018, section 5). A value.
class Spread {
 public:
  struct Options {
    double coverage = 0.9;
    // Whether a new row is of a group that no row was of: then most groups must be held.
    bool of_new_group = false;
  };
  struct Learned;
  // Few samples, or no neighbours: one width. REQUIRES: samples.
  static Learned Learn(const Estimator& estimator, const Data& data, std::span<const LeftOut> samples,
                       const Options& options);
  static Spread Constant(double half_width);
  // Returns the same, wider by `factor`.
  Spread Times(double factor) const;

  // `numbers` as Likeness has them.
  double HalfWidth(std::span<const float> numbers, std::span<const int> codes, double variance) const;

  // Returns how many times farther from all rows a row of this variance is than 99 of 100 rows that were left
  // out; 1 for nearer ones.
  double TimesFarther(double variance) const;

  // Finds the points of what a file gave. Returns false if it does not fit.
  bool Join(const Estimator& estimator, const Data& data);

 private:
  friend struct PredictorFile;
  double scale_ = 1;
  double usual_ = 0;                      // variance of 99 of 100 rows; 0: unknown
  std::vector<int> rows_;                 // of difficulty_
  std::optional<Neighbours> difficulty_;  // d; empty: one width
};

struct Spread::Learned {
  Spread spread;
  std::vector<double> half_widths;  // of the samples, each without its group
  // The interval score over that of an interval of constant width, on the same samples.
  double score_of_constant = 1;
};

}  // namespace weir::predict
