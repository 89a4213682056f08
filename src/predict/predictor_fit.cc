// How a predictor is fitted: the estimator of each split, and its interval.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "base/contains.h"
#include "predict/estimators/recipes.h"
#include "predict/estimators/tune_kernel.h"
#include "predict/predictor.h"
#include "predict/validation/evaluation.h"
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

}  // namespace

Result<std::string> ParseEstimator(std::string_view text) {
  const std::vector<std::string> known = EstimatorNames();
  if (Contains(known, text)) return std::string(text);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("there is no estimator \"{}\"; known: {}", text, fmt::join(known, ", ")));
}

Predictor::Learned Predictor::Learn(std::string_view name, Split split, const std::vector<Fold>& folds,
                                    const FitOptions& options) const {
  const Seed seed = Seed(options.seed).Stream(ToString(split));
  const Groups groups = KnowsGroups(data_->rows, folds) ? Groups::kOwn : Groups::kCommon;
  Learned learned{.recipe = RecipeOf(spec(), name, split, groups)};
  std::vector<int> all(data_->rows.size());
  std::iota(all.begin(), all.end(), 0);
  if (name == kNeighbours) {
    // The errors of the common weights show which rows are alike; weights of each group leave too little.
    const Physical physical = Physical::Fit(data_->rows, all, learned.recipe.physical);
    const Points points = Likeness(*data_, physical, all).PointsOf(*data_, all);
    learned.recipe.kernel =
        TuneKernel(points, Residuals(*data_, physical), folds, {.threads = options.threads, .seed = seed});
  }
  learned.validation =
      CrossValidate(*data_, split, folds, learned.recipe, {.threads = options.threads, .seed = seed});
  return learned;
}

void Predictor::LearnModel(Split split, const std::vector<Fold>& folds, const FitOptions& options) {
  FitResult::Split scored{.name = std::string(ToString(split))};
  // Every report names what the correction gains over the physical model, and the published baseline, which
  // takes long and is no way to leave the rows.
  Learned answering;
  for (const std::string_view name : {std::string_view(options.estimator), kPhysical, kLinear}) {
    if (!scored.candidates.empty() && name == options.estimator) continue;
    if (!scored.candidates.empty() && name == kLinear && split != Split::kInside) continue;
    Learned learned = Learn(name, split, folds, options);
    const bool answers = scored.candidates.empty();
    scored.candidates.push_back(
        {.score = learned.validation.Score(), .name = std::string(name), .weight = answers ? 1.0 : 0.0});
    if (name == kPhysical)
      worst_physical_ =
          std::max(worst_physical_, std::log1p(scored.candidates.back().score.p90_percent / 100));
    if (answers) answering = std::move(learned);
    if (options.progress)
      options.progress(fmt::format("{}: {}", spec().name, scored.name), std::ssize(scored.candidates), 3);
  }
  Model model{.split = split, .estimator = FitAll(answering.recipe, options)};
  if (split == Split::kCount) model.reach = Reach(data_->rows, folds);
  LearnSpread(answering.validation, model, scored);
  AddScores(answering.validation, scored);
  known_.LearnNewWords(*data_, split, folds);
  splits_.push_back(std::move(scored));
  models_.push_back(std::move(model));
}

Estimator Predictor::FitAll(const Recipe& recipe, const FitOptions& options) const {
  std::vector<int> all(data_->rows.size());
  std::iota(all.begin(), all.end(), 0);
  return Estimator::Fit(*data_, all, recipe, Seed(options.seed).Stream(recipe.name));
}

void Predictor::AddScores(const CrossValidation& validation, FitResult::Split& scored) const {
  scored.score = validation.Score();
  std::vector<Case> cases;
  for (size_t i = 0; i < validation.samples.size(); ++i) {
    const Row& row = data_->rows[static_cast<size_t>(validation.samples[i].row)];
    cases.push_back({.row = EscapeBytes(row.id),
                     .hardware = EscapeBytes(row.hardware),
                     .network = EscapeBytes(row.network),
                     .devices = row.devices,
                     .measured_ms = std::exp(validation.measured[i]),
                     .predicted_ms = std::exp(validation.predicted[i])});
  }
  AddCases(spec(), cases, scored);
}

void Predictor::LearnSpread(const CrossValidation& validation, Model& model, FitResult::Split& scored) {
  const std::vector<LeftOut>& samples = validation.samples;
  const bool of_new_group = model.split == Split::kHardware || model.split == Split::kNetwork;
  auto [spread, half_widths, score_of_constant] =
      Spread::Learn(model.estimator, *data_, samples,
                    {.coverage = of_new_group ? kCoverageOfNew : kCoverage, .of_new_group = of_new_group});
  // One group does not tell how far another may be off.
  if (of_new_group &&
      std::ranges::adjacent_find(samples, std::not_equal_to(), &LeftOut::group) == samples.end()) {
    spread = Spread::Constant(BorrowedHalfWidth());
    half_widths.assign(half_widths.size(), BorrowedHalfWidth());
  }
  if (model.split == Split::kHardware) calibration_ = LearnCalibration(samples);
  model.spread = std::move(spread);
  double held = 0;
  for (size_t i = 0; i < samples.size(); ++i) held += std::abs(samples[i].miss) <= half_widths[i] ? 1 : 0;
  scored.interval_coverage_percent = 100 * held / static_cast<double>(samples.size());
  scored.interval_half_width_percent = 100 * stats::Median(std::move(half_widths));
  scored.interval_score_of_constant = score_of_constant;
}

// A split without cross-validation is predicted by the physical model with the widest interval, wider still.
// If several counts were measured, but too few to cross-validate them, the model of rows inside continues
// beyond them, with an interval as wide as the worst split's.
void Predictor::Borrow(Split split, const FitOptions& options) {
  std::set<double> counts;
  for (const Row& row : data_->rows) counts.insert(row.devices);
  const bool has_inside = !splits_.empty() && splits_.front().name == FitResult::Split::kInside;
  if (split == Split::kCount && has_inside && counts.size() > 1) {
    Model model{.split = split, .estimator = models_.front().estimator};
    double half = kFewCounts;
    for (const FitResult::Split& split_of : splits_)
      half = std::max(half, std::log1p(split_of.score.p90_percent / 100));
    model.spread = Spread::Constant(half);
    model.reach = 1;
    models_.push_back(std::move(model));
    return;
  }
  Model model{.split = split, .estimator = FitAll(RecipeOf(spec(), kPhysical, split, Groups::kOwn), options)};
  model.spread = Spread::Constant(BorrowedHalfWidth());
  models_.push_back(std::move(model));
}

void Predictor::LearnModels(const FitOptions& options) {
  std::vector<Split> borrowing;
  for (const Split split : kSplits) {
    const std::vector<Fold> folds =
        Thin(MakeFolds(data_->rows, split, Seed(options.seed)), split, kMostSamples, Seed(options.seed));
    if (!folds.empty() && Contains(spec().splits, std::string(ToString(split)))) {
      LearnModel(split, folds, options);
    } else {
      borrowing.push_back(split);
    }
  }
  for (const Split split : borrowing) Borrow(split, options);  // by the scores of the others
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
  predictor.estimator_ = options.estimator;
  predictor.LearnModels(options);
  return predictor;
}

}  // namespace weir::predict
