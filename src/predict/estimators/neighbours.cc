#include "predict/estimators/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "stats/cholesky.h"

namespace weir::predict {
namespace {

constexpr double kLeastPivot = 1e-12;
constexpr double kNumber = 0.15, kCategory = 0.4;  // weights before tuning

}  // namespace

Points Points::Of(const Spec& spec) {
  Points points;
  for (const Number& number : spec.numbers) points.number_sides.push_back(number.side);
  for (const Category& category : spec.categories) points.category_sides.push_back(category.side);
  return points;
}

Points Points::Pick(std::span<const int> rows) const {
  Points picked{.number_sides = number_sides, .category_sides = category_sides, .numbers = {}, .codes = {}};
  for (const int row : rows) picked.Add(NumbersOf(row), CodesOf(row));
  return picked;
}

int64_t Points::size() const {
  if (!number_sides.empty()) return std::ssize(numbers) / std::ssize(number_sides);
  return category_sides.empty() ? 0 : std::ssize(codes) / std::ssize(category_sides);
}

std::span<const float> Points::NumbersOf(int64_t row) const {
  return std::span(numbers).subspan(static_cast<size_t>(row) * number_sides.size(), number_sides.size());
}

std::span<const int> Points::CodesOf(int64_t row) const {
  return std::span(codes).subspan(static_cast<size_t>(row) * category_sides.size(), category_sides.size());
}

void Points::Add(std::span<const float> numbers_of_row, std::span<const int> codes_of_row) {
  numbers.insert(numbers.end(), numbers_of_row.begin(), numbers_of_row.end());
  codes.insert(codes.end(), codes_of_row.begin(), codes_of_row.end());
}

Kernel Kernel::Even(const Points& points, double noise) {
  return {.number_weights = std::vector<double>(points.number_sides.size(), kNumber),
          .category_weights = std::vector<double>(points.category_sides.size(), kCategory),
          .noise = noise};
}

Neighbours::Neighbours(Points points, std::vector<double> values, Kernel kernel, int count)
    : points_(std::move(points)), values_(std::move(values)), kernel_(std::move(kernel)), count_(count) {}

double Neighbours::Covariance(std::span<const float> x, std::span<const int> c, std::span<const float> y,
                              std::span<const int> d) const {
  std::array<double, 4> apart{};
  for (size_t j = 0; j < x.size(); ++j) {
    const double weight = kernel_.number_weights[j];
    if (weight == 0 || x[j] == y[j]) continue;
    const bool x_known = !std::isnan(x[j]), y_known = !std::isnan(y[j]);
    const double difference = x_known && y_known ? std::abs(x[j] - y[j]) : x_known == y_known ? 0.0 : 1.0;
    apart[static_cast<size_t>(points_.number_sides[j])] += weight * difference;
  }
  for (size_t j = 0; j < c.size(); ++j) {
    if (c[j] != d[j] || c[j] < 0) {
      apart[static_cast<size_t>(points_.category_sides[j])] += kernel_.category_weights[j];
    }
  }
  const auto of = [&](Side side) { return std::exp(-apart[static_cast<size_t>(side)]); };
  const double hardware = of(Side::kHardware) * of(Side::kMachine), network = of(Side::kNetwork),
               run = of(Side::kRun);
  return run * (kernel_.all * hardware * network + kernel_.network * network + kernel_.hardware * hardware +
                kernel_.run);
}

Expected Neighbours::At(std::span<const float> numbers, std::span<const int> codes,
                        std::span<const char> leave_out) const {
  std::vector<std::pair<double, int64_t>> alike;
  alike.reserve(values_.size());
  for (int64_t i = 0; i < points_.size(); ++i) {
    if (!leave_out.empty() && leave_out[static_cast<size_t>(i)] != 0) continue;
    alike.emplace_back(-Covariance(numbers, codes, points_.NumbersOf(i), points_.CodesOf(i)), i);
  }
  const size_t n = std::min<size_t>(alike.size(), static_cast<size_t>(count_));
  const double self = kernel_.all + kernel_.network + kernel_.hardware + kernel_.run;
  if (n == 0) return {.mean = 0, .variance = self + kernel_.noise};
  std::ranges::nth_element(alike, alike.begin() + static_cast<std::ptrdiff_t>(n - 1));
  alike.resize(n);
  std::ranges::sort(alike);

  std::vector<double> covariance(n * n), right(n), value(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t row = alike[i].second;
    right[i] = -alike[i].first;
    value[i] = values_[static_cast<size_t>(row)];
    covariance[i * n + i] = self + kernel_.noise;
    for (size_t k = 0; k < i; ++k) {
      const int64_t other = alike[k].second;
      covariance[i * n + k] = Covariance(points_.NumbersOf(row), points_.CodesOf(row),
                                         points_.NumbersOf(other), points_.CodesOf(other));
    }
  }
  stats::Decompose(covariance, n, kLeastPivot);
  stats::SolveLower(covariance, right);
  stats::SolveLower(covariance, value);
  const double known = std::inner_product(right.begin(), right.end(), right.begin(), 0.0);
  return {.mean = std::inner_product(right.begin(), right.end(), value.begin(), 0.0),
          .variance = std::max(self + kernel_.noise - known, kLeastPivot)};
}

bool Neighbours::SetPoints(Points points) {
  points_ = std::move(points);
  return points_.size() == std::ssize(values_) &&
         kernel_.number_weights.size() == points_.number_sides.size() &&
         kernel_.category_weights.size() == points_.category_sides.size();
}

}  // namespace weir::predict
