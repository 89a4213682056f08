#include "predict/validation/cross_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.h"

namespace weir::predict {
namespace {

constexpr double kMostError = 50;  // of a logarithm

double Quantile(std::vector<double>& values, double p) {
  const auto rank = static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<size_t>(rank)];
}

double LogError(double log_predicted, double log_measured) {
  return std::min(kMostError, std::abs(log_predicted - log_measured));
}

std::string GroupOf(const Row& row, Split split, size_t fold) {
  if (split == Split::kHardware) return row.hardware;
  if (split == Split::kNetwork) return row.network_group;
  return fmt::format("{}", fold);
}

}  // namespace

results::FitScore ScoreOf(std::span<const double> log_predicted, std::span<const double> log_measured) {
  if (log_predicted.empty()) return {};
  std::vector<double> errors(log_predicted.size());
  double sum = 0, percentages = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    errors[i] = LogError(log_predicted[i], log_measured[i]);
    sum += errors[i];
    percentages +=
        std::abs(std::expm1(std::clamp(log_predicted[i] - log_measured[i], -kMostError, kMostError)));
  }
  const auto count = static_cast<double>(errors.size());
  return {.median_percent = 100 * std::expm1(Quantile(errors, 0.5)),
          .p90_percent = 100 * std::expm1(Quantile(errors, 0.9)),
          .log_mean_percent = 100 * std::expm1(sum / count),
          .mean_percent = 100 * percentages / count,
          .rows = std::ssize(errors)};
}

CrossValidation CrossValidate(const Data& data, Split split, const std::vector<Fold>& folds,
                              const Recipe& recipe, const CrossValidateOptions& options) {
  CrossValidation validation;
  std::vector<size_t> fold_of;
  for (size_t f = 0; f < folds.size(); ++f) {
    for (const int i : folds[f].test) {
      const Row& row = data.rows[static_cast<size_t>(i)];
      validation.samples.push_back({.row = i, .group = GroupOf(row, split, f)});
      validation.measured.push_back(std::log(*row.time));
      fold_of.push_back(f);
    }
  }
  validation.predicted.resize(fold_of.size());
  std::vector<Estimator> fits(folds.size());
  ParallelFor("predict", std::ssize(folds), options.threads, [&](int64_t fold) {
    const auto f = static_cast<size_t>(fold);
    fits[f] = Estimator::Fit(data, folds[f].train, recipe, options.seed.Stream(f));
  });
  ParallelFor("predict", std::ssize(fold_of), options.threads, [&](int64_t sample) {
    const auto i = static_cast<size_t>(sample);
    LeftOut& one = validation.samples[i];
    const Expected time = fits[fold_of[i]].LogTime(data.ViewOf(one.row));
    validation.predicted[i] = time.mean;
    one.variance = time.variance;
    one.miss = time.mean - validation.measured[i];
  });
  return validation;
}

}  // namespace weir::predict
