#include "predict/estimators/estimator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/seed.h"

namespace weir::predict {
namespace {

constexpr int kMostLevels = 150;       // of a category that becomes columns
constexpr int64_t kFewestOfLevel = 3;  // rows
constexpr double kLeastTime = 1e-12;   // ms
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
constexpr float kNoTerm = -60;  // below the logarithm of any term

}  // namespace

Data Data::Make(Spec spec, std::vector<Row> rows) {
  Data data{.spec = std::move(spec), .rows = std::move(rows)};
  data.encoder = Encoder::Learn(data.spec, data.rows);
  data.points = Points::Of(data.spec);
  for (const Row& row : data.rows) data.points.Add(data.encoder.Coordinates(row), data.encoder.Codes(row));
  return data;
}

double Estimator::BaseLogTime(const Row& row) const {
  return std::log(std::max(kLeastTime, linear_ ? linear_->Time(row) : physical_->Time(row)));
}

std::vector<float> Estimator::TreeInput(const View& view) const {
  std::vector<float> x;
  x.reserve(tree_numbers_.size() + tree_levels_.size() + 2 * view.row.terms.size());
  for (const int j : tree_numbers_) x.push_back(view.numbers[static_cast<size_t>(j)]);
  // XGBoost takes time for every known number; if most columns are levels, absent ones count as unknown.
  const float absent = tree_levels_.size() > tree_numbers_.size() ? kUnknown : 0.0F;
  for (const auto& [category, level] : tree_levels_) {
    x.push_back(view.codes[static_cast<size_t>(category)] == level ? 1.0F : absent);
  }
  // The shares of the terms tell how far the time is from its bounds, on any hardware.
  for (const double share : physical_->Shares(view.row)) x.push_back(static_cast<float>(share));
  for (const double term : view.row.terms)
    x.push_back(term > 0 ? static_cast<float>(std::log(term)) : kNoTerm);
  return x;
}

void Estimator::ChooseTreeColumns(const Data& data) {
  for (size_t j = 0; j < data.spec.numbers.size(); ++j) tree_numbers_.push_back(static_cast<int>(j));
  for (size_t j = 0; j < data.spec.categories.size(); ++j) {
    const int levels = data.encoder.levels(j);
    for (int level = 0; level < levels && levels > 1 && levels <= kMostLevels; ++level) {
      if (data.encoder.Count(j, level) >= kFewestOfLevel)
        tree_levels_.emplace_back(static_cast<int>(j), level);
    }
  }
}

Status Estimator::FitTrees(const Data& data, std::span<const int> use, std::span<const double> left,
                           Seed seed) {
  ChooseTreeColumns(data);
  std::vector<float> x;
  for (const int i : use) {
    const std::vector<float> input = TreeInput(data.ViewOf(i));
    x.insert(x.end(), input.begin(), input.end());
  }
  const std::vector<float> y(left.begin(), left.end());
  Trees::Options options = recipe_.tree;
  options.seed = seed.Stream("trees").value();
  trees_ = TRY(Trees::Fit(x, static_cast<int>(x.size() / y.size()), y, options));
  return {};
}

Result<Estimator> Estimator::Fit(const Data& data, std::span<const int> use, const Recipe& recipe,
                                 Seed seed) {
  Estimator estimator;
  estimator.recipe_ = recipe;
  if (recipe.base == Recipe::Base::kLinear) {
    estimator.linear_ = LinearFit::Fit(data.spec, data.rows, use, recipe.linear, seed);
    return estimator;
  }
  estimator.physical_ = Physical::Fit(data.rows, use, recipe.physical);

  std::vector<double> left;  // of log(time), by the base
  for (const int i : use) {
    const Row& row = data.rows[static_cast<size_t>(i)];
    left.push_back(std::log(*row.time) - estimator.BaseLogTime(row));
  }
  if (recipe.neighbours) {
    CHECK(recipe.kernel.has_value());
    estimator.neighbours_.emplace(data.points.Pick(use), left, *recipe.kernel, recipe.count);
  }
  if (recipe.trees) TRY_STATUS(estimator.FitTrees(data, use, left, seed));
  return estimator;
}

double Estimator::LogTime(const View& view) const {
  double log_time = BaseLogTime(view.row);
  if (neighbours_) log_time += neighbours_->At(view.numbers, view.codes);
  if (trees_) log_time += trees_->Predict(TreeInput(view));
  return log_time;
}

std::vector<double> Residuals(const Data& data, const Physical::Options& options) {
  std::vector<int> all(data.rows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const Physical physical = Physical::Fit(data.rows, all, options);
  std::vector<double> residuals;
  for (const Row& row : data.rows) {
    residuals.push_back(std::log(*row.time) - std::log(std::max(kLeastTime, physical.Time(row))));
  }
  return residuals;
}

}  // namespace weir::predict
