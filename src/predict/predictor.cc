#include "predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "predict/estimators/candidates.h"
#include "predict/estimators/tune_kernel.h"
#include "predict/median.h"
#include "predict/parallel.h"
#include "predict/table/contains.h"
#include "predict/validation/fold_facts.h"
#include "predict/validation/importance.h"

namespace weir::predict {
namespace {

const double kGreatestHalf = std::log(1000.0);  // half-width of an interval; a wider one is no answer
// Shares of left-out rows that intervals hold. Rows of known hardware and networks were left out of fits to
// three quarters of the rows; fits to all rows then hold 90 % of new ones.
constexpr double kCoverage = 0.88, kCoverageOfNew = 0.9;
constexpr double kBorrowed = 1.5;  // factor of the interval of a split without cross-validation
// Least half-width beyond two counts, about the 90 % quantile of errors at three devices where one and two
// were measured (cnn_torchvision).
constexpr double kFewCounts = 0.4;
constexpr size_t kFewestRows = 20;
constexpr size_t kMostWords = 8;       // of a category, that an unknown one may be
constexpr double kNoMatter = 0.05;     // difference of logarithms
constexpr size_t kMostSamples = 4000;  // of a cross-validation

// Returns a key that is the same for recipes that give the same estimator from all rows.
std::string KeyOf(const Recipe& recipe) {
  return fmt::format("{} {} {} {} ", recipe.name, recipe.physical.pull, recipe.physical.own_level,
                     recipe.physical.even);
}

// Returns those rows with `word` in the column.
Table WithWord(const Table& rows, std::span<const size_t> which, const std::string& column,
               const std::string& word) {
  const int place = rows.Column(column);
  Csv csv;
  csv.columns = rows.csv().columns;
  if (place < 0) csv.columns.push_back(column);
  for (const size_t row : which) {
    const auto cells = rows.csv().row(static_cast<int64_t>(row));
    csv.cells.insert(csv.cells.end(), cells.begin(), cells.end());
    if (place < 0)
      csv.cells.push_back(word);
    else
      csv.cells[csv.cells.size() - cells.size() + static_cast<size_t>(place)] = word;
    csv.lines.push_back(rows.csv().lines[row]);
  }
  return Table(std::move(csv));
}

}  // namespace

std::string_view ToString(Regime regime) {
  switch (regime) {
    case Regime::kInside:
      return "inside";
    case Regime::kOutside:
      return "outside";
    case Regime::kRefused:
      return "refused";
  }
  return "";
}

std::vector<std::string> EstimatorNames() {
  return {"auto", "lr-sfs", "lr-sfs-relative", "physical", "trees", "neighbours", "trees-neighbours"};
}

const Predictor::Model& Predictor::ModelOf(Split split) const {
  const auto found = std::ranges::find(models_, split, &Model::split);
  return found == models_.end() ? models_.front() : *found;
}

double Predictor::WidenByCount(const Row& row) const {
  const double reach = ModelOf(Split::kCount).reach;
  return reach > 0 ? std::max(1.0, known_.Doublings(row) / reach) : 1;
}

// Returns what tells of a prediction's difficulty: the row, how far the candidates differ, and the first one.
std::vector<float> Predictor::SpreadInput(const View& view, std::span<const double> logs) {
  std::vector<float> x(view.numbers.begin(), view.numbers.end());
  const auto [least, greatest] = std::ranges::minmax(logs);
  x.push_back(static_cast<float>(greatest - least));
  x.push_back(static_cast<float>(logs.front()));
  for (size_t j = 0; j < view.codes.size(); ++j) x.push_back(static_cast<float>(view.codes[j]));
  return x;
}

int Predictor::SpreadColumns(const Spec& spec) {
  return static_cast<int>(spec.numbers.size() + spec.categories.size()) + 2;
}

Prediction Predictor::PredictRow(const Row& row) const {
  Prediction prediction{.id = row.id};
  const Applicability::Position position = known_.PositionOf(spec(), data_->encoder, row);
  prediction.outside = position.outside;
  if (!row.problem.empty() || !position.refusal.empty()) {
    const bool both = !row.problem.empty() && !position.refusal.empty();
    prediction.outside = row.problem + (both ? "; " : "") + position.refusal;
    return prediction;
  }
  const Model& model = ModelOf(position.split);
  const std::vector<float> numbers = data_->encoder.Coordinates(row);
  const std::vector<int> codes = data_->encoder.Codes(row);
  const View view{row, numbers, codes};
  double log_time = 0;
  std::vector<double> logs;
  for (const auto& [index, weight] : model.mixture) {
    const Estimator& estimator = estimators_[static_cast<size_t>(index)];
    logs.push_back(estimator.LogTime(view));
    log_time += weight * logs.back();
    if (const Physical* physical = estimator.physical(); physical && prediction.shares.empty()) {
      prediction.shares = physical->Shares(row);
    }
  }
  double half = position.widen * WidenByCount(row) * model.spread.HalfWidth(SpreadInput(view, logs));
  if (position.is_unvalidated) half = std::max(half, BorrowedHalfWidth());
  half += position.add;
  if (const auto shift = shifts_.find(row.hardware); shift != shifts_.end()) {
    log_time += shift->second.log_factor;
    half *= shift->second.narrower;
  }
  const auto target = [&](double log) { return TargetFromTime(spec(), row, std::exp(log)); };
  const double value = target(log_time), one = target(log_time - half), other = target(log_time + half);
  if (!(std::abs(log_time) <= kMostLogTime) || !std::isfinite(value) || !std::isfinite(one + other)) {
    prediction.outside = "the models give no number for this row";
    return prediction;
  }
  if (half > kGreatestHalf) {
    prediction.outside += fmt::format(
        "{}the interval would be from a thousandth to a thousand times: no measurement supports an answer",
        prediction.outside.empty() ? "" : "; ");
    return prediction;
  }
  prediction.regime = position.outside.empty() ? Regime::kInside : Regime::kOutside;
  prediction.time_ms = std::exp(log_time);
  prediction.value = value;
  prediction.low = std::min(one, other);
  prediction.high = std::max(one, other);
  return prediction;
}

// A category that every row of the fit has may, where it is unknown, be any measured one: the interval grows
// by as much as their predictions differ.
Status Predictor::WidenForUnknownWord(const Table& rows, std::span<const size_t> unknown, size_t category,
                                      std::vector<Prediction>& predictions) const {
  const std::string& column = spec().categories[category].column;
  std::vector<double> apart(unknown.size(), 0.0);
  for (const std::string& word : data_->encoder.MostCommon(category, kMostWords)) {
    const std::vector<Row> made =
        TRY(MakeRows(spec(), facts_, WithWord(rows, unknown, column, word), WithTarget::kNo));
    for (size_t i = 0; i < made.size(); ++i) {
      const Prediction other = PredictRow(made[i]);
      if (other.time_ms)
        apart[i] = std::max(apart[i], std::abs(std::log(*other.time_ms / *predictions[unknown[i]].time_ms)));
    }
  }
  for (size_t i = 0; i < unknown.size(); ++i) {
    Prediction& one = predictions[unknown[i]];
    if (apart[i] < kNoMatter) continue;
    one.low = *one.low / std::exp(apart[i]);
    one.high = *one.high * std::exp(apart[i]);
    one.regime = Regime::kOutside;
    one.outside += fmt::format("{}{} is not given (its values differ by up to {:.2g} times)",
                               one.outside.empty() ? "" : "; ", column, std::exp(apart[i]));
  }
  return {};
}

Result<std::vector<Prediction>> Predictor::Predict(const Table& rows) const {
  const std::vector<Row> made = TRY(MakeRows(spec(), facts_, rows, WithTarget::kNo));
  std::vector<Prediction> predictions(made.size());
  std::ranges::transform(made, predictions.begin(), [this](const Row& row) { return PredictRow(row); });
  for (size_t j = 0; j < spec().categories.size(); ++j) {
    const auto& [column, side] = spec().categories[j];
    if (side != Side::kRun || data_->encoder.Knows(j, "") || Contains(spec().derive, column, &Named::name))
      continue;
    std::vector<size_t> unknown;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].categories[j].empty() && predictions[i].value) unknown.push_back(i);
    }
    if (!unknown.empty()) TRY_STATUS(WidenForUnknownWord(rows, unknown, j, predictions));
  }
  return predictions;
}

Result<std::vector<std::string>> Predictor::Calibrate(const Table& measured) {
  std::map<std::string, std::vector<double>> misses;
  std::vector<std::string> lines;
  std::string problem;
  int64_t unusable = 0;
  for (const Row& row : TRY(MakeRows(spec(), facts_, measured, WithTarget::kYes))) {
    const Prediction prediction = PredictRow(row);
    if (!prediction.time_ms) {
      if (unusable++ == 0) problem = fmt::format("the first: {}: {}", row.id, prediction.outside);
      continue;
    }
    const double miss = std::log(*row.time / *prediction.time_ms);
    if (calibration_ && !known_.KnowsHardware(row.hardware) && !calibration_->IsPlausible(miss)) {
      lines.push_back(
          fmt::format("{}: run {} is left out: it took {:.3g} times the prediction: check its unit",
                      row.hardware, row.id, std::exp(miss)));
    } else {
      misses[row.hardware].push_back(miss);
    }
  }
  if (misses.empty() && lines.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no row can be used to calibrate{}{}", unusable > 0 ? "; " : "", problem));
  if (unusable > 0)
    lines.push_back(fmt::format("{} of {} rows cannot be used; {}", unusable, measured.rows(), problem));
  for (const auto& [hardware, logs] : misses) {
    const auto n = std::ssize(logs);
    if (known_.KnowsHardware(hardware)) {
      lines.push_back(fmt::format("{}: {} runs are not used: the fit knows this hardware", hardware, n));
      continue;
    }
    const Calibration known = calibration_.value_or(Calibration()), given = known.For(logs);
    const bool is_far = given.common > known.common;
    if (!calibration_ || !(known.helps() || is_far)) {
      lines.push_back(
          fmt::format("{}: {} runs are not used: in cross-validation on left-out hardware that did not help",
                      hardware, n));
    } else {
      shifts_[hardware] = {given.Shift(logs), given.Narrower(n) * std::hypot(given.common, given.own) /
                                                  std::hypot(known.common, known.own)};
      lines.push_back(fmt::format(
          "{}: times {:+.1f} % by {} runs{}", hardware, 100 * std::expm1(shifts_[hardware].log_factor), n,
          is_far ? ", which are farther off than any other hardware's: its interval is wider" : ""));
    }
  }
  return lines;
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
  ForEach(std::ssize(wanted_), options.threads, [&](int64_t i) {
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
  std::vector<Recipe> recipes = Candidates(split, data_->rows.size(), groups, options.estimator);
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
  for (size_t r = 0; r < validation.recipes.size(); ++r) {
    const Recipe& recipe = validation.recipes[r];
    scores_.push_back({split, recipe.name, validation.ScoreOf(r), validation.weights[r]});
    if (validation.weights[r] == 0) continue;
    // Kernels are tuned for the split.
    const std::string key = KeyOf(recipe) + (recipe.neighbours ? std::string(ToString(split)) : "");
    model.mixture.emplace_back(Want(recipe, key), validation.weights[r]);
  }
  validated_.push_back(TRY(LearnSpread(validation, parts, model, seed.Stream("spread"))));
  if (options.ablation) validated_.back().ablations = Ablate(validation, parts, choose);
  known_.LearnNewWords(*data_, split, folds);
  if (options.left_out) options.left_out(split, validation.row, validation.Mixture(), validation.measured);
  models_.push_back(std::move(model));
  return {};
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

Result<Predictor::Validated> Predictor::LearnSpread(const CrossValidation& validation,
                                                    std::span<const int> parts, Model& model, Seed seed) {
  const std::vector<double> mixture = validation.Mixture();
  std::vector<double> misses;
  std::vector<float> inputs;
  for (size_t i = 0; i < mixture.size(); ++i) {
    const auto row = static_cast<size_t>(validation.row[i]);
    std::vector<double> logs;
    for (size_t r = 0; r < validation.weights.size(); ++r) {
      if (validation.weights[r] > 0) logs.push_back(validation.predicted[r][i]);
    }
    const auto x = SpreadInput({data_->rows[row], data_->numbers[row], data_->codes[row]}, logs);
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
  Validated validated{.split = model.split,
                      .score = ScoreOf(mixture, validation.measured),
                      .score_of_constant = score_of_constant,
                      .ablations = {}};
  for (size_t i = 0; i < misses.size(); ++i) {
    validated.coverage +=
        (std::abs(misses[i]) <= half_widths[i] ? 1.0 : 0.0) / static_cast<double>(misses.size());
  }
  validated.half_width = Median(std::move(half_widths));
  return validated;
}

double Predictor::BorrowedHalfWidth() const {
  double half = 0.7;
  for (const CandidateScore& score : scores_) {
    if (score.recipe == "physical") half = std::max(half, std::log1p(score.score.p90));
  }
  return kBorrowed * half;
}

// A split without cross-validation is predicted by the physical model with the widest interval, wider still.
// If several counts were measured, but too few to cross-validate them, the mixture of rows inside continues
// beyond them, with an interval as wide as the worst split's.
void Predictor::Borrow(Split split) {
  Model model{.split = split};
  std::set<double> counts;
  for (const Row& row : data_->rows) counts.insert(row.devices);
  const bool has_inside = !validated_.empty() && validated_.front().split == Split::kInside;
  if (split == Split::kCount && has_inside && counts.size() > 1) {
    model.mixture = models_.front().mixture;
    double half = kFewCounts;
    for (const Validated& validated : validated_) half = std::max(half, std::log1p(validated.score.p90));
    model.spread = Spread::Constant(half);
    model.reach = 1;
    models_.push_back(std::move(model));
    return;
  }
  const Recipe recipe = Candidates(split, data_->rows.size(), Groups::kOwn, "physical").front();
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
  if (!Contains(EstimatorNames(), options.estimator)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no estimator \"{}\"; known: {}", options.estimator,
                            fmt::join(EstimatorNames(), ", ")));
  }
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
  TRY_STATUS(predictor.LearnModels(options));
  return predictor;
}

}  // namespace weir::predict
