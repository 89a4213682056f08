// A few runs on the target: how much of what they say of the model's error to believe.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::predict {

// An error of a model on hardware it never saw is in part common to the hardware, in part each row's own. Of
// n runs whose mean log(measured / predicted) is m, the part n / (n + k) m is believed, k being the ratio of
// the rows' own variance to the common one, as in a one-way model with random effects (Searle, Casella and
// McCulloch 1992, chapter 3; the best linear unbiased predictor). A value.
struct Calibration {
  double k = 0;       // runs after which half is believed
  double common = 0;  // standard deviations of the logarithm
  double own = 0;
  // Mean absolute percentage error of the other rows of a group without and with five of its rows, rehearsed.
  double error_without = 0, error_with = 0;

  bool helps() const { return error_with < 0.99 * error_without; }
  // Whether a run may be so far off, log(measured / predicted): not five deviations, nor four times.
  bool IsPlausible(double miss) const;
  // log factor for the times.
  double Shift(std::span<const double> log_measured_over_predicted) const;
  // What an interval is multiplied by after n runs.
  double Narrower(int64_t n) const;
};

// From misses log(predicted / measured) of rows left out, by group (one hardware each). Nothing where fewer
// than three groups have ten rows.
std::optional<Calibration> LearnCalibration(std::span<const double> misses,
                                            std::span<const std::string> groups);

Json ToJson(const Calibration& calibration);
Result<Calibration> CalibrationFrom(const Json& json);

}  // namespace weir::predict
