// How far a few runs of one's own move the predictions of alike rows.
#pragma once

#include <optional>
#include <span>

#include "predict/interval/spread.h"

namespace weir::predict {

// The error on a card has a part that all its rows share and a part of each row: a one-way model with random
// effects (Searle, Casella and McCulloch 1992, chapter 3). The standard deviations of the logarithm are those
// of hardware that was left out of a fit; where too little was left out, the defaults. A value.
struct Calibration {
  double common = 0.2, own = 0.1;

  // Returns whether log(measured / predicted) of a run is within four times or five deviations.
  bool IsPlausible(double miss) const;

  // Returns the same for a level below, a network on a card or a configuration: what its rows share and the
  // rest of their error have half the variance each.
  Calibration Below() const;

  struct Shift {
    double log = 0;       // added to the logarithm of a time
    double variance = 0;  // that is left
  };
  // Returns the best linear unbiased prediction of what runs with these log(measured / predicted) share:
  // n / (n + own^2 / common^2) of their mean. Runs tell both variances, too: their spread with one degree of
  // freedom for the usual one, and a mean that is farther off than usual a greater common one. So runs that
  // agree decide.
  Shift Of(std::span<const double> misses) const;
};

// Learns from left-out rows, a group for each hardware. Returns nullopt if fewer than three groups have ten
// rows.
std::optional<Calibration> LearnCalibration(std::span<const LeftOut> samples);

}  // namespace weir::predict
