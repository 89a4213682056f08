#include "predict/interval/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::predict {
namespace {

constexpr size_t kFewestRows = 10, kFewestGroups = 3, kRuns = 5;
constexpr double kFarFactor = 4, kFarDeviations = 5;
constexpr double kSurprise = 3;  // standard deviations

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

bool Calibration::IsPlausible(double miss) const {
  return std::abs(miss) <= std::max(std::log(kFarFactor), kFarDeviations * std::hypot(common, own));
}

Calibration Calibration::For(std::span<const double> log_measured_over_predicted) const {
  if (log_measured_over_predicted.empty()) return *this;
  const double mean = Mean(log_measured_over_predicted);
  const double noise = own * own / static_cast<double>(log_measured_over_predicted.size());
  if (std::abs(mean) <= kSurprise * std::sqrt(common * common + noise)) return *this;
  Calibration other = *this;
  other.common = std::sqrt(mean * mean - noise);
  other.k = own * own / (other.common * other.common);
  return other;
}

double Calibration::Shift(std::span<const double> log_measured_over_predicted) const {
  if (log_measured_over_predicted.empty()) return 0;
  const auto n = static_cast<double>(log_measured_over_predicted.size());
  return n / (n + k) * Mean(log_measured_over_predicted);
}

double Calibration::Narrower(int64_t n) const {
  const double before = common * common + own * own;
  if (before <= 0) return 1;
  const double left = common * common * k / (static_cast<double>(n) + k) + own * own;
  return std::sqrt(std::min(1.0, left / before));
}

std::optional<Calibration> LearnCalibration(std::span<const double> misses,
                                            std::span<const std::string> groups) {
  std::map<std::string, std::vector<double>> by_group;
  for (size_t i = 0; i < misses.size(); ++i) by_group[groups[i]].push_back(-misses[i]);
  std::erase_if(by_group, [](const auto& item) { return item.second.size() < kFewestRows; });
  if (by_group.size() < kFewestGroups) return std::nullopt;

  double within = 0, degrees = 0, between = 0, inverse_sizes = 0;
  for (const auto& [group, values] : by_group) {
    const double mean = Mean(values);
    for (const double value : values) within += (value - mean) * (value - mean);
    degrees += static_cast<double>(values.size() - 1);
    between += mean * mean;  // about 0: an error that all hardware has is common too
    inverse_sizes += 1 / static_cast<double>(values.size());
  }
  const auto count = static_cast<double>(by_group.size());
  Calibration calibration{.own = std::sqrt(within / degrees)};
  const double own = within / degrees;
  const double common = std::max(between / count - own * inverse_sizes / count, 1e-6);
  calibration.common = std::sqrt(common);
  calibration.k = own / common;

  // Validated: rows at even distances stand for the runs, the others are predicted.
  double without = 0, with = 0, rows = 0;
  for (const auto& [group, values] : by_group) {
    std::vector<double> runs;
    const size_t step = values.size() / kRuns;
    const auto is_run = [&](size_t i) { return i % step == 0 && i / step < kRuns; };
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_run(i)) runs.push_back(values[i]);
    }
    const double shift = calibration.Shift(runs);
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_run(i)) continue;
      without += std::abs(values[i]);
      with += std::abs(shift - values[i]);
      rows += 1;
    }
  }
  calibration.error_without = without / rows;
  calibration.error_with = with / rows;
  return calibration;
}

}  // namespace weir::predict
