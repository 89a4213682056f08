// Where an axis has its ticks. Pure.
#pragma once

#include <vector>

namespace weir::report {

// About `wanted` round numbers (1, 2 or 5 times a power of ten) from 0 to the first at or above `most`.
// `most` above 0.
std::vector<double> TicksFromZero(double most, int wanted = 5);

// Maps values to places on a line, evenly or by their logarithms.
class Scale {
 public:
  enum class Kind { kLinear, kLogarithmic };
  // REQUIRES: low < high, and above 0 where logarithmic.
  Scale(Kind kind, double low, double high, double begin, double end);
  double operator()(double value) const;

 private:
  Kind kind_;
  double low_, high_, begin_, end_;
};

// Logarithmic where the numbers span a factor of 8 or more and all are above 0, as batches do.
// Returns the ticks of an axis over these values, which rise: each of them where they are at most twelve,
// else round numbers between the first and the last.
std::vector<double> TicksOver(const std::vector<double>& values);

Scale::Kind KindFor(const std::vector<double>& values);

}  // namespace weir::report
