// How much of the error of a few runs on new hardware to correct.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::predict {

// The error on new hardware has a part common to the hardware and a part of each row. With n runs of mean
// log(measured / predicted) m, the correction is n / (n + k) m. k is the ratio of the rows' variance to the
// common one: the best linear unbiased predictor of a one-way model with random effects (Searle, Casella and
// McCulloch 1992, chapter 3). A value.
struct Calibration {
  double k = 0;       // runs after which half of their mean counts
  double common = 0;  // standard deviations of the logarithm
  double own = 0;
  // Mean |log(predicted / measured)| of the other rows of a group, without and with five of its rows.
  double error_without = 0, error_with = 0;

  bool helps() const { return error_with < 0.99 * error_without; }
  // Returns whether log(measured / predicted) of a run is within four times or five deviations.
  bool IsPlausible(double miss) const;
  // Returns the calibration for these runs: if their mean is three standard deviations from what other
  // hardware makes likely, this hardware is of another kind, and the runs tell how far such hardware is off.
  Calibration For(std::span<const double> log_measured_over_predicted) const;
  // Returns the logarithm of the factor of the times.
  double Shift(std::span<const double> log_measured_over_predicted) const;
  // Returns the factor of an interval after n runs.
  double Narrower(int64_t n) const;
};

// Learns from log(predicted / measured) of left-out rows, by group (one hardware each). Returns nullopt if
// fewer than three groups have ten rows.
std::optional<Calibration> LearnCalibration(std::span<const double> misses,
                                            std::span<const std::string> groups);

}  // namespace weir::predict
