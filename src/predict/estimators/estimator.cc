#include "predict/estimators/estimator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/seed.h"

namespace weir::predict {
namespace {

constexpr double kLeastTime = 1e-12;  // ms
// One root of a share is 1 at most, other coordinates are about 2 apart.
constexpr double kShareScale = 3;

double LogOf(double time) { return std::log(std::max(kLeastTime, time)); }

}  // namespace

Data Data::Make(Spec spec, std::vector<Row> rows) {
  Data data{.spec = std::move(spec), .rows = std::move(rows)};
  data.encoder = Encoder::Learn(data.spec, data.rows);
  data.points = Points::Of(data.spec);
  for (const Row& row : data.rows) {
    data.points.Add(data.encoder.Coordinates(row), data.encoder.Codes(row));
    data.terms.insert(data.terms.end(), row.terms.begin(), row.terms.end());
  }
  return data;
}

Likeness::Likeness(const Data& data, const Physical& physical, std::span<const int> use) {
  ChooseColumns(data.spec, physical.weights());
  double squares = 0;
  std::vector<double> logs;
  for (const int i : use) logs.push_back(LogTime(data.TermsOf(i)));
  const auto count = static_cast<double>(logs.size());
  mean_ = std::reduce(logs.begin(), logs.end()) / count;
  for (const double log : logs) squares += (log - mean_) * (log - mean_);
  if (squares > 1e-12 * count) deviation_ = std::sqrt(squares / count);
}

void Likeness::ChooseColumns(const Spec& spec, std::span<const double> weights) {
  for (size_t j = 0; j < spec.numbers.size(); ++j) {
    if (spec.numbers[j].side != Side::kHardware) numbers_.push_back(static_cast<int>(j));
  }
  weights_.assign(weights.begin(), weights.end());
}

double Likeness::LogTime(std::span<const double> terms) const {
  double time = 0;
  for (size_t k = 0; k < weights_.size(); ++k) time += weights_[k] * terms[k];
  return LogOf(time);
}

std::vector<float> Likeness::Numbers(std::span<const float> numbers, std::span<const double> terms) const {
  std::vector<float> likeness;
  for (const int j : numbers_) likeness.push_back(numbers[static_cast<size_t>(j)]);
  const double log_time = LogTime(terms);
  for (size_t k = 0; k < weights_.size(); ++k) {
    const double share = weights_[k] * terms[k] / std::exp(log_time);
    likeness.push_back(static_cast<float>(kShareScale * std::sqrt(share)));
  }
  likeness.push_back(static_cast<float>((log_time - mean_) / deviation_));
  return likeness;
}

Points Likeness::PointsOf(const Data& data, std::span<const int> rows) const {
  Points points{.number_sides = {}, .category_sides = data.points.category_sides, .numbers = {}, .codes = {}};
  for (const int j : numbers_)
    points.number_sides.push_back(data.points.number_sides[static_cast<size_t>(j)]);
  points.number_sides.resize(numbers_.size() + weights_.size() + 1, Side::kRun);
  for (const int i : rows)
    points.Add(Numbers(data.points.NumbersOf(i), data.TermsOf(i)), data.points.CodesOf(i));
  return points;
}

double Estimator::BaseLogTime(const Row& row) const {
  if (linear_) return LogOf(linear_->Time(row));
  const double own = LogOf(physical_->Time(row));
  return neighbours_ ? (own + LogOf(physical_->CommonTime(row))) / 2 : own;
}

std::vector<double> Estimator::Shares(const Row& row) const {
  if (!physical_) return {};
  std::vector<double> shares = physical_->Shares(row);
  if (!neighbours_) return shares;
  // The base is a mean of logarithms, in which a share of either time counts half.
  const std::vector<double> common = physical_->CommonShares(row);
  for (size_t k = 0; k < shares.size(); ++k) shares[k] = (shares[k] + common[k]) / 2;
  return shares;
}

Estimator Estimator::Fit(const Data& data, std::span<const int> use, const Recipe& recipe, Seed seed) {
  Estimator estimator;
  estimator.recipe_ = recipe;
  if (recipe.base == Recipe::Base::kLinear) {
    estimator.linear_ = LinearFit::Fit(data.spec, data.rows, use, recipe.linear, seed);
    return estimator;
  }
  estimator.physical_ = Physical::Fit(data.rows, use, recipe.physical);
  if (!recipe.kernel) return estimator;
  estimator.likeness_ = Likeness(data, *estimator.physical_, use);
  estimator.neighbours_.emplace();  // which the base depends on
  std::vector<double> left;         // of log(time), by the base
  for (const int i : use) {
    const Row& row = data.rows[static_cast<size_t>(i)];
    left.push_back(std::log(*row.time) - estimator.BaseLogTime(row));
  }
  Points points = estimator.likeness_.PointsOf(data, use);
  Kernel kernel =
      recipe.kernel->number_weights.empty() ? Kernel::Even(points, recipe.kernel->noise) : *recipe.kernel;
  estimator.neighbours_.emplace(std::move(points), std::move(left), std::move(kernel), recipe.count);
  return estimator;
}

Expected Estimator::LogTime(const View& view) const {
  Expected expected{.mean = 0, .variance = 0};
  if (neighbours_) expected = neighbours_->At(likeness_.Numbers(view.numbers, view.row.terms), view.codes);
  expected.mean += BaseLogTime(view.row);
  return expected;
}

std::vector<double> Residuals(const Data& data, const Physical& physical) {
  std::vector<double> residuals;
  for (const Row& row : data.rows) residuals.push_back(std::log(*row.time) - LogOf(physical.CommonTime(row)));
  return residuals;
}

}  // namespace weir::predict
