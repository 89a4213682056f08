#include "predict/rehearse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "predict/median.h"
#include "predict/parallel.h"

namespace weir::predict {
namespace {

constexpr int kMostPicks = 24;
constexpr double kLeastWeight = 0.04;  // less is not worth its time

double Quantile(std::vector<double>& values, double p) {
  const auto rank = static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  std::ranges::nth_element(values, values.begin() + rank);
  return values[static_cast<size_t>(rank)];
}

double RelativeError(double log_predicted, double log_measured) {
  return std::abs(std::expm1(std::clamp(log_predicted - log_measured, -50.0, 50.0)));
}

std::string GroupOf(const Row& row, Question question, size_t fold) {
  if (question == Question::kHardware) return row.hardware;
  if (question == Question::kNetwork) return row.kin;
  return fmt::format("{}", fold);
}

// The mixture of least loss, each sample counting as its `importance`.
std::vector<double> ChooseFor(const Rehearsal& rehearsal, const std::function<bool(const Recipe&)>& allowed,
                              std::span<const double> importance) {
  const size_t recipes = rehearsal.recipes.size(), samples = rehearsal.measured.size();
  std::vector<double> counts(recipes, 0.0), sum(samples, 0.0), trial(samples);
  double best = std::numeric_limits<double>::infinity();
  for (int picks = 1; picks <= kMostPicks; ++picks) {
    std::optional<size_t> next;
    double least = best * 0.999;
    for (size_t r = 0; r < recipes; ++r) {
      if (!allowed(rehearsal.recipes[r])) continue;
      for (size_t i = 0; i < samples; ++i) trial[i] = (sum[i] + rehearsal.predicted[r][i]) / picks;
      const double loss = LossOf(trial, rehearsal.measured, importance);
      if (loss < least || (picks == 1 && !next)) {
        least = loss;
        next = r;
      }
    }
    if (!next) break;
    best = least;
    counts[*next] += 1;
    for (size_t i = 0; i < samples; ++i) sum[i] += rehearsal.predicted[*next][i];
  }
  double total = 0;
  for (const double count : counts) total += count;
  for (double& count : counts) count /= std::max(total, 1.0);
  return counts;
}

}  // namespace

Score ScoreOf(std::span<const double> log_predicted, std::span<const double> log_measured) {
  if (log_predicted.empty()) return {};
  std::vector<double> errors(log_predicted.size());
  double sum = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    errors[i] = RelativeError(log_predicted[i], log_measured[i]);
    sum += errors[i];
  }
  return {.mean = sum / static_cast<double>(errors.size()),
          .median = Quantile(errors, 0.5),
          .p90 = Quantile(errors, 0.9),
          .rows = std::ssize(errors)};
}

double LossOf(std::span<const double> log_predicted, std::span<const double> log_measured,
              std::span<const double> importance) {
  std::vector<double> errors(log_predicted.size());
  double sum = 0, total = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    errors[i] = RelativeError(log_predicted[i], log_measured[i]);
    sum += importance[i] * errors[i];
    total += importance[i];
  }
  return sum / total + WeightedQuantile(errors, importance, 0.5);
}

std::vector<double> Rehearsal::Mixture() const {
  std::vector<double> mixture(measured.size(), 0.0);
  for (size_t r = 0; r < weights.size(); ++r) {
    for (size_t i = 0; i < mixture.size() && weights[r] > 0; ++i) mixture[i] += weights[r] * predicted[r][i];
  }
  return mixture;
}

Result<Rehearsal> Rehearse(const Data& data, Question question, const std::vector<Fold>& folds,
                           std::vector<Recipe> recipes, const RehearseOptions& options) {
  Rehearsal rehearsal{.question = question, .recipes = std::move(recipes)};
  std::vector<size_t> begin;
  for (size_t f = 0; f < folds.size(); ++f) {
    begin.push_back(rehearsal.row.size());
    for (const int i : folds[f].test) {
      const Row& row = data.rows[static_cast<size_t>(i)];
      rehearsal.row.push_back(i);
      rehearsal.group.push_back(GroupOf(row, question, f));
      rehearsal.measured.push_back(std::log(*row.time));
    }
  }
  rehearsal.importance.assign(rehearsal.row.size(), 1.0);
  rehearsal.predicted.assign(rehearsal.recipes.size(), std::vector<double>(rehearsal.row.size(), 0.0));

  const auto jobs = std::ssize(folds) * std::ssize(rehearsal.recipes);
  std::vector<std::optional<Error>> errors(static_cast<size_t>(jobs));
  std::atomic<int64_t> done = 0;
  ForEach(jobs, options.threads, [&](int64_t job) {
    const auto fold = static_cast<size_t>(job) / rehearsal.recipes.size();
    const auto recipe = static_cast<size_t>(job) % rehearsal.recipes.size();
    const auto estimator = Estimator::Fit(data, folds[fold].train, rehearsal.recipes[recipe],
                                          options.seed.Stream(static_cast<uint64_t>(fold)));
    if (!estimator) {
      errors[static_cast<size_t>(job)] = estimator.error();
    } else {
      for (size_t i = 0; i < folds[fold].test.size(); ++i) {
        const auto row = static_cast<size_t>(folds[fold].test[i]);
        rehearsal.predicted[recipe][begin[fold] + i] =
            estimator->LogTime({data.rows[row], data.numbers[row], data.codes[row]});
      }
    }
    if (options.progress) options.progress(++done, jobs);
  });
  for (const auto& error : errors) {
    if (error) return std::unexpected(*error);
  }
  return rehearsal;
}

std::vector<double> DrawImportance(const Rehearsal& rehearsal, std::span<const int> parts, Seed seed) {
  Random random = seed.MakeRandom();
  std::vector<double> drawn(parts.empty() ? 0 : static_cast<size_t>(std::ranges::max(parts)) + 1);
  for (double& one : drawn) one = -std::log1p(-random.Uniform());
  std::vector<double> importance = rehearsal.importance;
  for (size_t i = 0; i < importance.size(); ++i) importance[i] *= drawn[static_cast<size_t>(parts[i])];
  return importance;
}

std::vector<double> ChooseMixture(const Rehearsal& rehearsal,
                                  const std::function<bool(const Recipe&)>& allowed,
                                  std::span<const int> parts, const RehearseOptions& options) {
  std::vector<std::vector<double>> draws(kDraws);
  ForEach(kDraws, options.threads, [&](int64_t draw) {
    const auto importance =
        DrawImportance(rehearsal, parts, options.seed.Stream(static_cast<uint64_t>(draw)));
    draws[static_cast<size_t>(draw)] = ChooseFor(rehearsal, allowed, importance);
  });
  std::vector<double> weights(rehearsal.recipes.size(), 0.0);
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
