// How a predictor is fitted: the candidates of each split, their mixture, and its interval.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/contains.h"
#include "base/parallel.h"
#include "predict/estimators/candidates.h"
#include "predict/estimators/tune_kernel.h"
#include "predict/predictor.h"
#include "predict/validation/evaluation.h"
#include "predict/validation/importance.h"
#include "stats/median.h"

namespace weir::predict {
namespace {

using results::FitResult;

// Shares of left-out rows that intervals hold. Rows of known hardware and networks were left out of fits to
// three quarters of the rows; fits to all rows then hold 90 % of new ones.
constexpr double kCoverage = 0.88, kCoverageOfNew = 0.9;
// Least half-width beyond two counts, about the 90 % quantile of errors at three devices where one and two
// were measured (cnn_torchvision).
constexpr double kFewCounts = 0.4;
constexpr size_t kFewestRows = 20;
constexpr size_t kMostSamples = 4000;  // of a cross-validation
constexpr std::string_view kAuto = "auto";

// Returns a key that is the same for recipes that give the same estimator from all rows.
std::string KeyOf(const Recipe& recipe) {
  return fmt::format("{} {} {} {} ", recipe.name, recipe.physical.pull, recipe.physical.own_level,
                     recipe.physical.even);
}

}  // namespace

Result<std::vector<std::string>> ParseEstimator(std::string_view text) {
  std::vector<std::string> candidates;
  if (text == kAuto) return candidates;
  const std::vector<std::string> known = CandidateNames();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    candidates.emplace_back(text.substr(begin, end - begin));
    if (!Contains(known, candidates.back()))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("there is no estimator \"{}\"; known: {}, or some of {}, joined by commas",
                              candidates.back(), kAuto, fmt::join(known, ", ")));
    begin = end + 1;
  }
  return candidates;
}

std::string EstimatorText(std::span<const std::string> candidates) {
  return candidates.empty() ? std::string(kAuto) : fmt::format("{}", fmt::join(candidates, ","));
}

int Predictor::Want(const Recipe& recipe, const std::string& key) {
  const auto there = std::ranges::find(wanted_, key, &Wanted::key);
  if (there != wanted_.end()) return static_cast<int>(there - wanted_.begin());
  wanted_.push_back({key, recipe});
  return static_cast<int>(wanted_.size()) - 1;
}

Status Predictor::FitWanted(const FitOptions& options) {
  std::vector<int> all(data_->rows.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::optional<Result<Estimator>>> fitted(wanted_.size());
  std::atomic<int64_t> done = 0;
  ParallelFor("predict", std::ssize(wanted_), options.threads, [&](int64_t i) {
    const Recipe& recipe = wanted_[static_cast<size_t>(i)].recipe;
    fitted[static_cast<size_t>(i)] =
        Estimator::Fit(*data_, all, recipe, Seed(options.seed).Stream(recipe.name));
    if (options.progress)
      options.progress(fmt::format("{}: on all rows", spec().name), ++done, std::ssize(wanted_));
  });
  for (auto& estimator : fitted) estimators_.push_back(TRY(std::move(*estimator)));
  wanted_.clear();
  return {};
}

std::vector<Recipe> Predictor::RecipesFor(Split split, const std::vector<Fold>& folds,
                                          const FitOptions& options, Seed seed) const {
  const Groups groups = KnowsGroups(data_->rows, folds) ? Groups::kOwn : Groups::kCommon;
  std::vector<Recipe> recipes = Candidates(split, data_->rows.size(), groups, options.candidates);
  // The first have common weights where there are groups: what those leave shows which rows are alike.
  // Weights of each group leave too little to tell.
  const auto neighbours = std::ranges::find(recipes, true, &Recipe::neighbours);
  if (neighbours == recipes.end()) return recipes;
  const Kernel kernel = TuneKernel(*data_, Residuals(*data_, neighbours->physical), folds,
                                   {.threads = options.threads, .seed = seed});
  for (Recipe& recipe : recipes) {
    if (recipe.neighbours) recipe.kernel = kernel;
  }
  return recipes;
}

Status Predictor::LearnModel(Split split, const std::vector<Fold>& folds, const FitOptions& options) {
  const Seed seed = Seed(options.seed).Stream(ToString(split));
  const auto progress = [&](int64_t done, int64_t total) {
    if (options.progress) options.progress(fmt::format("{}: {}", spec().name, ToString(split)), done, total);
  };
  CrossValidation validation =
      TRY(CrossValidate(*data_, split, folds, RecipesFor(split, folds, options, seed),
                        {.threads = options.threads, .seed = seed, .progress = progress}));
  if (split != Split::kInside) {
    // Rows left out together err together: the n of one group count as sqrt(n).
    validation.importance = ImportanceOf(validation.group, [](double n) { return 1 / std::sqrt(n); });
  }
  const std::vector<int> parts = PartsOf(validation);
  const CrossValidateOptions choose{.threads = options.threads, .seed = seed.Stream("mixture")};
  validation.weights = ChooseMixture(validation, parts, choose);

  Model model{.split = split};
  if (split == Split::kCount) model.reach = Reach(data_->rows, folds);
  FitResult::Split scored{.name = std::string(ToString(split))};
  for (size_t r = 0; r < validation.recipes.size(); ++r) {
    const Recipe& recipe = validation.recipes[r];
    scored.candidates.push_back(
        {.score = validation.ScoreOf(r), .name = recipe.name, .weight = validation.weights[r]});
    if (recipe.name == "physical")
      worst_physical_ =
          std::max(worst_physical_, std::log1p(scored.candidates.back().score.p90_percent / 100));
    if (validation.weights[r] == 0) continue;
    // Kernels are tuned for the split.
    const std::string key = KeyOf(recipe) + (recipe.neighbours ? scored.name : "");
    model.mixture.emplace_back(Want(recipe, key), validation.weights[r]);
  }
  TRY_STATUS(LearnSpread(validation, parts, model, scored, seed.Stream("spread")));
  AddScores(validation, scored);
  known_.LearnNewWords(*data_, split, folds);
  splits_.push_back(std::move(scored));
  models_.push_back(std::move(model));
  return {};
}

void Predictor::AddScores(const CrossValidation& validation, FitResult::Split& scored) const {
  const std::vector<double> mixture = validation.Mixture();
  scored.score = ScoreOf(mixture, validation.measured);
  std::vector<Case> cases;
  for (size_t i = 0; i < mixture.size(); ++i) {
    const Row& row = data_->rows[static_cast<size_t>(validation.row[i])];
    cases.push_back({.row = EscapeBytes(row.id),
                     .hardware = EscapeBytes(row.hardware),
                     .network = EscapeBytes(row.network),
                     .devices = row.devices,
                     .measured_ms = std::exp(validation.measured[i]),
                     .predicted_ms = std::exp(mixture[i])});
  }
  AddCases(spec(), cases, scored);
}

std::vector<int> Predictor::PartsOf(const CrossValidation& validation) const {
  std::vector<std::string> names = validation.group;
  for (size_t i = 0; i < names.size(); ++i) {
    if (validation.split == Split::kInside) names[i] = fmt::format("{}", i);
    if (validation.split == Split::kCount)
      names[i] = data_->rows[static_cast<size_t>(validation.row[i])].hardware;
  }
  std::map<std::string_view, int> numbers;
  std::vector<int> parts;
  parts.reserve(names.size());
  for (const std::string& name : names)
    parts.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
  return parts;
}

Status Predictor::LearnSpread(const CrossValidation& validation, std::span<const int> parts, Model& model,
                              FitResult::Split& scored, Seed seed) {
  const std::vector<double> mixture = validation.Mixture();
  std::vector<double> misses;
  std::vector<float> inputs;
  for (size_t i = 0; i < mixture.size(); ++i) {
    std::vector<double> logs;
    for (size_t r = 0; r < validation.weights.size(); ++r) {
      if (validation.weights[r] > 0) logs.push_back(validation.predicted[r][i]);
    }
    const auto x = SpreadInput(data_->ViewOf(validation.row[i]), logs);
    inputs.insert(inputs.end(), x.begin(), x.end());
    misses.push_back(mixture[i] - validation.measured[i]);
  }
  const bool is_known = model.split == Split::kInside || model.split == Split::kCount;
  auto [spread, half_widths, score_of_constant] =
      TRY(Spread::Learn(inputs, SpreadColumns(spec()), misses, validation.importance, parts,
                        is_known ? kCoverage : kCoverageOfNew, seed));
  if (model.split != Split::kInside) {
    // One group does not tell how far another may be off.
    if (model.split != Split::kCount &&
        std::ranges::adjacent_find(validation.group, std::not_equal_to()) == validation.group.end()) {
      spread = Spread::Constant(BorrowedHalfWidth());
      half_widths.assign(half_widths.size(), BorrowedHalfWidth());
    }
    const double wider = ForAnotherGroup(misses, validation.group);
    spread = spread.Times(wider);
    for (double& half : half_widths) half *= wider;
    if (model.split == Split::kHardware) calibration_ = LearnCalibration(misses, validation.group);
  }
  model.spread = std::move(spread);
  double held = 0;
  for (size_t i = 0; i < misses.size(); ++i) held += std::abs(misses[i]) <= half_widths[i] ? 1 : 0;
  scored.interval_coverage_percent = 100 * held / static_cast<double>(misses.size());
  scored.interval_half_width_percent = 100 * stats::Median(std::move(half_widths));
  scored.interval_score_of_constant = score_of_constant;
  return {};
}

// A split without cross-validation is predicted by the physical model with the widest interval, wider still.
// If several counts were measured, but too few to cross-validate them, the mixture of rows inside continues
// beyond them, with an interval as wide as the worst split's.
void Predictor::Borrow(Split split) {
  Model model{.split = split};
  std::set<double> counts;
  for (const Row& row : data_->rows) counts.insert(row.devices);
  const bool has_inside = !splits_.empty() && splits_.front().name == FitResult::Split::kInside;
  if (split == Split::kCount && has_inside && counts.size() > 1) {
    model.mixture = models_.front().mixture;
    double half = kFewCounts;
    for (const FitResult::Split& split_of : splits_)
      half = std::max(half, std::log1p(split_of.score.p90_percent / 100));
    model.spread = Spread::Constant(half);
    model.reach = 1;
    models_.push_back(std::move(model));
    return;
  }
  const std::vector<std::string> physical = {"physical"};
  const Recipe recipe = Candidates(split, data_->rows.size(), Groups::kOwn, physical).front();
  model.mixture.emplace_back(Want(recipe, KeyOf(recipe)), 1.0);
  model.spread = Spread::Constant(BorrowedHalfWidth());
  models_.push_back(std::move(model));
}

Status Predictor::LearnModels(const FitOptions& options) {
  std::vector<Split> borrowing;
  for (const Split split : kSplits) {
    const std::vector<Fold> folds =
        Thin(MakeFolds(data_->rows, split, Seed(options.seed)), split, kMostSamples, Seed(options.seed));
    if (!folds.empty() && Contains(spec().splits, std::string(ToString(split)))) {
      TRY_STATUS(LearnModel(split, folds, options));
    } else {
      borrowing.push_back(split);
    }
  }
  for (const Split split : borrowing) Borrow(split);  // by the scores of the others
  return FitWanted(options);
}

Result<Predictor> Predictor::Fit(Spec spec, Facts facts, std::vector<Row> rows, const FitOptions& options) {
  if (rows.size() < kFewestRows) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("a fit needs {} usable rows, there are {}", kFewestRows, rows.size()));
  }
  Predictor predictor;
  predictor.data_ = std::make_shared<const Data>(Data::Make(std::move(spec), std::move(rows)));
  predictor.facts_ = std::move(facts);
  predictor.known_ = Applicability::Learn(*predictor.data_, predictor.facts_, FindKinks(*predictor.data_));
  predictor.seed_ = options.seed;
  predictor.estimator_ = EstimatorText(options.candidates);
  TRY_STATUS(predictor.LearnModels(options));
  return predictor;
}

}  // namespace weir::predict
