// Candidates tried on rows they did not see, and the mixture of them that did best.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predict/estimator.h"
#include "predict/questions.h"

namespace weir::predict {

// The mean and other figures of |predicted / measured - 1| of times.
struct Score {
  double mean = 0, median = 0, p90 = 0;
  int64_t rows = 0;
};
// Of logarithms. REQUIRES: as many of both.
Score ScoreOf(std::span<const double> log_predicted, std::span<const double> log_measured);

// Mean + median of the same, by which candidates are chosen; each counts as its `importance`.
double LossOf(std::span<const double> log_predicted, std::span<const double> log_measured,
              std::span<const double> importance);

// One question rehearsed: every candidate on every left-out row. A row that is left out by several folds is
// there several times.
struct Rehearsal {
  Question question = Question::kInside;
  std::vector<Recipe> recipes;
  std::vector<int> row;            // of each sample
  std::vector<std::string> group;  // that it was left out with: its hardware, its kin, else its fold
  std::vector<double> measured;    // log ms
  std::vector<double> importance;  // of each sample where they are weighed; 1 in the mean
  std::vector<std::vector<double>> predicted;  // by recipe, log ms
  std::vector<double> weights;                 // of the recipes in the mixture of logarithms; together 1

  std::vector<double> Mixture() const;
  Score ScoreOf(size_t recipe) const { return predict::ScoreOf(predicted[recipe], measured); }
};

struct RehearseOptions {
  int threads = 1;
  Seed seed = Seed(1);
  std::function<void(int64_t done, int64_t total)> progress;  // from any thread; may be empty
};

// Fits every recipe without each fold's test rows and predicts those. kInternal as Estimator::Fit.
Result<Rehearsal> Rehearse(const Data& data, Question question, const std::vector<Fold>& folds,
                           std::vector<Recipe> recipes, const RehearseOptions& options);

// What is chosen on the samples is the mean of what kDraws draws choose, in which each part of them counts as
// chance has it (the Bayesian bootstrap, Rubin 1981), so that no single part decides between choices that are
// nearly alike. `parts` numbers, from 0, what belongs together.
inline constexpr int kDraws = 20;
std::vector<double> DrawImportance(const Rehearsal& rehearsal, std::span<const int> parts, Seed seed);

// Bagged ensemble selection (Caruana, Munson and Niculescu-Mizil 2006): beginning with the best candidate,
// adds, with replacement, the one that lowers mean + median error most, until none does by a thousandth; the
// mean over draws. `allowed` says which recipes may be in it.
std::vector<double> ChooseMixture(const Rehearsal& rehearsal,
                                  const std::function<bool(const Recipe&)>& allowed,
                                  std::span<const int> parts, const RehearseOptions& options);

}  // namespace weir::predict
