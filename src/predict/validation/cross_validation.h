// Candidates tried on rows that their fits did not see, and the mixture with the least error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predict/estimators/estimator.h"
#include "predict/validation/splits.h"
#include "results/fit_result.h"

namespace weir::predict {

// Scores errors of times as |log(predicted / measured)|, which counts three times too long as three times too
// short. Takes logarithms. REQUIRES: as many of both.
results::FitScore ScoreOf(std::span<const double> log_predicted, std::span<const double> log_measured);

// Returns mean + median of |log(predicted / measured)|, by which mixtures are chosen; each row counts as its
// `importance`.
double LossOf(std::span<const double> log_predicted, std::span<const double> log_measured,
              std::span<const double> importance);

// One split cross-validated: the prediction of every candidate for every left-out row. A row that several
// folds leave out is there several times.
struct CrossValidation {
  Split split = Split::kInside;
  std::vector<Recipe> recipes;
  std::vector<int> row;            // of each sample
  std::vector<std::string> group;  // left out together: the hardware, the network's group, else the fold
  std::vector<double> measured;    // log ms
  std::vector<double> importance;  // of each sample, 1 in the mean
  std::vector<std::vector<double>> predicted;  // by recipe, log ms
  std::vector<double> weights;                 // of the recipes in the mixture of logarithms; sum 1

  std::vector<double> Mixture() const;
  results::FitScore ScoreOf(size_t recipe) const { return predict::ScoreOf(predicted[recipe], measured); }
};

struct CrossValidateOptions {
  int threads = 1;
  Seed seed = Seed(1);
  std::function<void(int64_t done, int64_t total)> progress;  // from any thread; may be empty
};

// Fits every recipe without each fold's test rows, and predicts those. Returns kInternal as Estimator::Fit.
Result<CrossValidation> CrossValidate(const Data& data, Split split, const std::vector<Fold>& folds,
                                      std::vector<Recipe> recipes, const CrossValidateOptions& options);

// Chooses a mixture by bagged ensemble selection (Caruana, Munson and Niculescu-Mizil 2006). One selection
// begins with the best candidate and adds, with replacement, the one that lowers the loss most, until none
// does by a thousandth. The weights are the mean over 20 draws of the importance of each part (the Bayesian
// bootstrap, Rubin 1981), so that no part decides alone. `parts` numbers, from 0, the samples that belong
// together.
std::vector<double> ChooseMixture(const CrossValidation& validation, std::span<const int> parts,
                                  const CrossValidateOptions& options);

}  // namespace weir::predict
