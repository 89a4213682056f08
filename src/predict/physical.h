// Time as a sum of physical terms with weights that are not negative.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "predict/dataset.h"

namespace weir::predict {

// time = sum over k of weight[k] * terms[k]: work over peaks, bytes over bandwidth, launches, transfers. Each
// weight is the inverse of an efficiency; none is negative (Lawson and Hanson 1974, chapter 23), so that
// outside the data the time still goes the way the hardware does. Rows of one `group` (a network at a
// precision, say) have weights of their own, pulled to the common ones at the level of the group's rows. The
// loss is that of the logarithm, by Gauss-Newton steps, with Huber's weights, so that a few wrong rows do not
// decide. A value.
class Physical {
 public:
  struct Options {
    // How many rows of its own a group needs to count as much as the common weights. Infinite: no groups.
    double pull = 3;
    // The common weights that a group is pulled to are those at the level of its rows. Without, what all of
    // its rows are off by is left for a correction that knows the group.
    bool own_level = true;
    // Each row of a hardware that has n of them counts 1 / (n + 1), not 1: what the rows of one hardware have
    // in common is as large as what each has of its own, so n of them say of others what n / (n + 1) would.
    bool even = false;
  };
  static Physical Fit(const std::vector<Row>& rows, std::span<const int> use, const Options& options);

  // ms; always above 0 where the weights of the terms that are there do not all vanish.
  double Time(const Row& row) const;
  // The part of each term in Time, together 1.
  std::vector<double> Shares(const Row& row) const;
  const std::vector<double>& weights() const { return common_; }
  // The common sum, and those of the first groups.
  std::string Text(const Spec& spec) const;

  Json ToJson() const;
  static Result<Physical> FromJson(const Json& json);

 private:
  const std::vector<double>& WeightsOf(const Row& row) const;

  std::vector<double> common_;
  std::map<std::string, std::vector<double>> groups_;
};

}  // namespace weir::predict
