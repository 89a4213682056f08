#include "predict/validation/cross_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "base/parallel.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

constexpr int kMostPicks = 24;
constexpr int kDraws = 20;
constexpr double kLeastWeight = 0.04;  // a candidate with less is not worth its time
constexpr double kMostError = 50;      // of a logarithm

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

// Returns the mixture of least loss; each sample counts as its `importance`.
std::vector<double> ChooseFor(const CrossValidation& validation, std::span<const double> importance) {
  const size_t recipes = validation.recipes.size(), samples = validation.measured.size();
  std::vector<double> counts(recipes, 0.0), sum(samples, 0.0), trial(samples);
  double best = std::numeric_limits<double>::infinity();
  for (int picks = 1; picks <= kMostPicks; ++picks) {
    std::optional<size_t> next;
    double least = best * 0.999;
    for (size_t r = 0; r < recipes; ++r) {
      for (size_t i = 0; i < samples; ++i) trial[i] = (sum[i] + validation.predicted[r][i]) / picks;
      const double loss = LossOf(trial, validation.measured, importance);
      if (loss < least || (picks == 1 && !next)) {
        least = loss;
        next = r;
      }
    }
    if (!next) break;
    best = least;
    counts[*next] += 1;
    for (size_t i = 0; i < samples; ++i) sum[i] += validation.predicted[*next][i];
  }
  double total = 0;
  for (const double count : counts) total += count;
  for (double& count : counts) count /= std::max(total, 1.0);
  return counts;
}

// Draws the weight of each part.
std::vector<double> DrawImportance(const CrossValidation& validation, std::span<const int> parts, Seed seed) {
  Random random = seed.MakeRandom();
  std::vector<double> drawn(parts.empty() ? 0 : static_cast<size_t>(std::ranges::max(parts)) + 1);
  for (double& one : drawn) one = -std::log1p(-random.Uniform());
  std::vector<double> importance = validation.importance;
  for (size_t i = 0; i < importance.size(); ++i) importance[i] *= drawn[static_cast<size_t>(parts[i])];
  return importance;
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

double LossOf(std::span<const double> log_predicted, std::span<const double> log_measured,
              std::span<const double> importance) {
  std::vector<double> errors(log_predicted.size());
  double sum = 0, total = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    errors[i] = LogError(log_predicted[i], log_measured[i]);
    sum += importance[i] * errors[i];
    total += importance[i];
  }
  return sum / total + stats::WeightedQuantile(errors, importance, 0.5);
}

std::vector<double> CrossValidation::Mixture() const {
  std::vector<double> mixture(measured.size(), 0.0);
  for (size_t r = 0; r < weights.size(); ++r) {
    for (size_t i = 0; i < mixture.size() && weights[r] > 0; ++i) mixture[i] += weights[r] * predicted[r][i];
  }
  return mixture;
}

Result<CrossValidation> CrossValidate(const Data& data, Split split, const std::vector<Fold>& folds,
                                      std::vector<Recipe> recipes, const CrossValidateOptions& options) {
  CrossValidation validation{.split = split, .recipes = std::move(recipes)};
  std::vector<size_t> begin;
  for (size_t f = 0; f < folds.size(); ++f) {
    begin.push_back(validation.row.size());
    for (const int i : folds[f].test) {
      const Row& row = data.rows[static_cast<size_t>(i)];
      validation.row.push_back(i);
      validation.group.push_back(GroupOf(row, split, f));
      validation.measured.push_back(std::log(*row.time));
    }
  }
  validation.importance.assign(validation.row.size(), 1.0);
  validation.predicted.assign(validation.recipes.size(), std::vector<double>(validation.row.size(), 0.0));

  const auto jobs = std::ssize(folds) * std::ssize(validation.recipes);
  std::vector<std::optional<Error>> errors(static_cast<size_t>(jobs));
  std::atomic<int64_t> done = 0;
  ParallelFor("predict", jobs, options.threads, [&](int64_t job) {
    const auto fold = static_cast<size_t>(job) / validation.recipes.size();
    const auto recipe = static_cast<size_t>(job) % validation.recipes.size();
    const auto estimator = Estimator::Fit(data, folds[fold].train, validation.recipes[recipe],
                                          options.seed.Stream(static_cast<uint64_t>(fold)));
    if (!estimator) {
      errors[static_cast<size_t>(job)] = estimator.error();
    } else {
      for (size_t i = 0; i < folds[fold].test.size(); ++i) {
        validation.predicted[recipe][begin[fold] + i] = estimator->LogTime(data.ViewOf(folds[fold].test[i]));
      }
    }
    if (options.progress) options.progress(++done, jobs);
  });
  for (const auto& error : errors) {
    if (error) return std::unexpected(*error);
  }
  return validation;
}

std::vector<double> ChooseMixture(const CrossValidation& validation, std::span<const int> parts,
                                  const CrossValidateOptions& options) {
  std::vector<std::vector<double>> draws(kDraws);
  ParallelFor("predict", kDraws, options.threads, [&](int64_t draw) {
    const auto importance =
        DrawImportance(validation, parts, options.seed.Stream(static_cast<uint64_t>(draw)));
    draws[static_cast<size_t>(draw)] = ChooseFor(validation, importance);
  });
  std::vector<double> weights(validation.recipes.size(), 0.0);
  for (const auto& draw : draws) {
    for (size_t r = 0; r < weights.size(); ++r) weights[r] += draw[r] / kDraws;
  }
  double total = 0;
  for (double& weight : weights) {
    if (weight < kLeastWeight) weight = 0;
    total += weight;
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

}  // namespace weir::predict
