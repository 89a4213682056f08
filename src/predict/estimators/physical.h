// Time as a sum of physical terms with weights that are not negative.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "predict/table/dataset.h"

namespace weir::predict {

// time = sum over k of weight[k] * terms[k]: work over peaks, bytes over bandwidth, launches, transfers. A
// weight is the inverse of an efficiency and never negative (Lawson and Hanson 1974, chapter 23), so faster
// hardware is never predicted to be slower. Rows of one `group` have their own weights, pulled to the common
// ones. The loss is of the logarithm, with Huber's weights, so that a few wrong rows do not decide;
// Gauss-Newton steps minimise it. A value.
class Physical {
 public:
  struct Options {
    // Rows that a group needs to count as much as the common weights. Infinite: no groups.
    double pull = 3;
    // Whether the common weights are scaled to the level of the group's rows before they pull. If not, the
    // common error of a group is left to a correction that knows the group.
    bool own_level = true;
    // Whether a row counts 1 / (n + 1) if its hardware has n rows. The rows of one hardware err alike, so n
    // of them tell of others about as much as one does.
    bool even = false;
    std::vector<double> least;  // of each weight; empty: 0
  };
  static Physical Fit(const std::vector<Row>& rows, std::span<const int> use, const Options& options);

  // Returns ms; above 0 unless the weights of all its terms are 0.
  double Time(const Row& row) const;
  // The same by the common weights.
  double CommonTime(const Row& row) const;
  // Returns the share of each term in the time; sum 1.
  std::vector<double> Shares(const Row& row) const;
  std::vector<double> CommonShares(const Row& row) const;
  const std::vector<double>& weights() const { return common_; }
  // Returns the common sum and those of the first groups as text.
  std::string Text(const Spec& spec) const;

 private:
  friend struct PredictorFile;
  const std::vector<double>& WeightsOf(const Row& row) const;

  std::vector<double> common_;
  std::map<std::string, std::vector<double>> groups_;
};

}  // namespace weir::predict
