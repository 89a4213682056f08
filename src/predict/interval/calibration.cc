#include "predict/interval/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace weir::predict {
namespace {

constexpr size_t kFewestRows = 10, kFewestGroups = 3;
constexpr double kFarFactor = 4, kFarDeviations = 5;
constexpr double kLeast = 1e-6;  // of a variance

double Mean(std::span<const double> values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

double SquaresAbout(std::span<const double> values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

}  // namespace

bool Calibration::IsPlausible(double miss) const {
  return std::abs(miss) <= std::max(std::log(kFarFactor), kFarDeviations * std::hypot(common, own));
}

Calibration Calibration::Below() const { return {.common = own / std::sqrt(2), .own = own / std::sqrt(2)}; }

Calibration::Shift Calibration::Of(std::span<const double> misses) const {
  if (misses.empty()) return {.log = 0, .variance = common * common + own * own};
  const auto n = static_cast<double>(misses.size());
  const double mean = Mean(misses);
  const double noise = std::max(kLeast, (own * own + SquaresAbout(misses, mean)) / n);
  const double shared = std::max({kLeast, common * common, mean * mean - noise / n});
  const double k = noise / shared;
  return {.log = n / (n + k) * mean, .variance = shared * k / (n + k) + std::max(noise, own * own)};
}

std::optional<Calibration> LearnCalibration(std::span<const LeftOut> samples) {
  std::map<std::string, std::vector<double>> by_group;
  for (const LeftOut& sample : samples) by_group[sample.group].push_back(-sample.miss);
  std::erase_if(by_group, [](const auto& item) { return item.second.size() < kFewestRows; });
  if (by_group.size() < kFewestGroups) return std::nullopt;

  double within = 0, degrees = 0, between = 0, inverse_sizes = 0;
  for (const auto& [group, values] : by_group) {
    const double mean = Mean(values);
    within += SquaresAbout(values, mean);
    degrees += static_cast<double>(values.size() - 1);
    between += mean * mean;  // about 0: an error that all hardware has is common too
    inverse_sizes += 1 / static_cast<double>(values.size());
  }
  const auto count = static_cast<double>(by_group.size());
  const double own = within / degrees;
  return Calibration{.common = std::sqrt(std::max((between - own * inverse_sizes) / count, kLeast)),
                     .own = std::sqrt(own)};
}

}  // namespace weir::predict
