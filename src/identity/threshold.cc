#include "identity/threshold.h"

#include <algorithm>
#include <cmath>

namespace weir::identity {

double ChanceAbove(double cosine, double dimension) {
  // Simpson's rule over the angle: the density of the angle t is sin(t)^(dimension - 2).
  constexpr int kSteps = 2000;
  const double exponent = dimension - 2, end = std::acos(std::clamp(cosine, -1.0, 1.0));
  const auto density = [&](double t) { return std::pow(std::sin(t), exponent); };
  double sum = density(0) + density(end);
  for (int i = 1; i < kSteps; ++i) sum += density(end * i / kSteps) * (i % 2 == 0 ? 2 : 4);
  const double log_whole =
      0.5 * std::log(M_PI) + std::lgamma((dimension - 1) / 2) - std::lgamma(dimension / 2);
  return sum * end / kSteps / 3 / std::exp(log_whole);
}

Result<double> ThresholdFor(double false_alarms, uint64_t enrolled, double mean_squared_cosine) {
  const double dimension = 1 / std::max(mean_squared_cosine, 1e-6);
  if (dimension <= 3)
    return Fail(
        ErrorCode::kUnsupported,
        "the enrolled embeddings are nearly all alike, so no threshold can be derived: give --threshold");
  const double chance =
      -std::expm1(std::log1p(-false_alarms) / static_cast<double>(std::max<uint64_t>(enrolled, 1)));
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (ChanceAbove(middle, dimension) > chance ? low : high) = middle;
  }
  return high;
}

Share ShareOf(uint64_t hits, uint64_t tries) {
  CHECK(tries > 0);
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(tries);
  const double p = static_cast<double>(hits) / n, middle = p + kZ * kZ / (2 * n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)), whole = 1 + kZ * kZ / n;
  return {p, std::max(0.0, (middle - half) / whole), std::min(1.0, (middle + half) / whole)};
}

}  // namespace weir::identity
