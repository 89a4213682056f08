// Gaussian-process regression on the nearest rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/table/spec.h"

namespace weir::predict {

// Rows as points: standardised numbers (NaN: unknown) and codes of categories (-1: not in the fit).
struct Points {
  std::vector<Side> number_sides, category_sides;
  std::vector<float> numbers;  // row-major
  std::vector<int> codes;      // row-major

  static Points Of(const Spec& spec);  // none, with the sides of the spec's columns
  Points Pick(std::span<const int> rows) const;
  int64_t size() const;
  bool IsWhole() const {
    return std::ssize(numbers) == size() * std::ssize(number_sides) &&
           std::ssize(codes) == size() * std::ssize(category_sides);
  }
  std::span<const float> NumbersOf(int64_t row) const;
  std::span<const int> CodesOf(int64_t row) const;
  void Add(std::span<const float> numbers_of_row, std::span<const int> codes_of_row);
};

// What neighbours say of a point: the expected value, 0 far from all, and the variance, largest there.
struct Expected {
  double mean = 0, variance = 0;
};

// The covariance of two rows. With d(side) the sum over the side's dimensions of weight * |difference| (a
// category differs by 1, an unknown number from a known one by 1) it is
//   all exp(-d(everything)) + network exp(-d(everything but hardware and machine)) + hardware
//   exp(-d(everything but network)) + run exp(-d(run)).
// So the effect of a network on any hardware is known on new hardware too. A sum of products of exponential
// kernels is positive definite (Rasmussen and Williams 2006, chapter 4).
struct Kernel {
  std::vector<double> number_weights, category_weights;  // at least 0
  double all = 1, network = 0.5, hardware = 0.3, run = 0.1;
  double noise = 0.05;  // variance of a row itself, in the same unit

  // Returns the kernel before any tuning: each number of these points counts alike, and each category.
  static Kernel Even(const Points& points, double noise = 0.05);
};

// Regression with prior mean 0 on the rows of greatest covariance (Vecchia 1988; Datta and others 2016). A
// value; thread-safe.
class Neighbours {
 public:
  Neighbours() = default;  // from a file; then SetPoints
  // Uses `count` rows for one answer. REQUIRES: as many values as points.
  Neighbours(Points points, std::vector<double> values, Kernel kernel, int count);

  // `leave_out`, if not empty, is 1 for each row that must not be used.
  Expected At(std::span<const float> numbers, std::span<const int> codes,
              std::span<const char> leave_out = {}) const;

  // Sets the points of a regression from a file, which are rows of the fit. Returns false if they do not fit.
  bool SetPoints(Points points);
  const Kernel& kernel() const { return kernel_; }
  int count() const { return count_; }

 private:
  friend struct PredictorFile;
  double Covariance(std::span<const float> x, std::span<const int> c, std::span<const float> y,
                    std::span<const int> d) const;

  Points points_;
  std::vector<double> values_;
  Kernel kernel_;
  int count_ = 64;
};

}  // namespace weir::predict
