// Gaussian-process regression over the nearest rows: what rows like this one did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/spec.h"

namespace weir::predict {

// Rows as places in a space: standardised numbers (NaN: unknown) and codes of categories (-1: never seen).
struct Points {
  std::vector<Side> number_sides, category_sides;
  std::vector<float> numbers;  // row-major
  std::vector<int> codes;      // row-major

  int64_t size() const;
  std::span<const float> NumbersOf(int64_t row) const;
  std::span<const int> CodesOf(int64_t row) const;
  void Add(std::span<const float> numbers_of_row, std::span<const int> codes_of_row);
};

// How alike two rows are: with d(side) the sum over the side's dimensions of weight * |difference| (a
// category differs by 1, an unknown number from a known one by 1),
//   all exp(-d(everything)) + network exp(-d(everything but hardware and machine)) + hardware
//   exp(-d(everything but network)) + run exp(-d(run)).
// The parts are effects that cancel in other parts: what a network does on any hardware is known on new
// hardware too. A sum of products of exponential kernels, so positive definite (Rasmussen and Williams 2006,
// chapter 4).
struct Likeness {
  std::vector<double> number_weights, category_weights;  // at least 0
  double all = 1, network = 0.5, hardware = 0.3, run = 0.1;
  double noise = 0.05;  // variance of a row itself, in the same unit
};

// Kriging with mean 0 on the rows most like the one asked for (Vecchia 1988; Datta and others 2016). A value,
// so any number of threads may ask.
class Neighbours {
 public:
  // `count` rows are looked at for an answer. REQUIRES: as many values as points.
  Neighbours(Points points, std::vector<double> values, Likeness likeness, int count);

  // The mean expected: 0 far from all. `leave_out`, where not empty, holds 1 for each row that may not be
  // used.
  double At(std::span<const float> numbers, std::span<const int> codes,
            std::span<const char> leave_out = {}) const;

  const std::vector<double>& values() const { return values_; }
  const Likeness& likeness() const { return likeness_; }
  int count() const { return count_; }

 private:
  double Covariance(std::span<const float> x, std::span<const int> c, std::span<const float> y,
                    std::span<const int> d) const;

  Points points_;
  std::vector<double> values_;
  Likeness likeness_;
  int count_;
};

}  // namespace weir::predict
