#include "predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "predict/contains.h"
#include "predict/fold_facts.h"
#include "predict/importance.h"
#include "predict/median.h"
#include "predict/parallel.h"
#include "predict/recipes.h"
#include "predict/tune.h"

namespace weir::predict {
namespace {

const double kGreatestHalf = std::log(1000.0);  // of an interval: one that is wider is no answer
// Asked of rows left out. Those of known hardware and networks were left out of fits to three quarters; fits
// to all then hold 90 % of new ones.
constexpr double kCoverage = 0.88, kCoverageOfNew = 0.9;
constexpr double kBorrowed = 1.5;  // an interval of a question that could not be rehearsed is wider by this
constexpr size_t kFewestRows = 20;
constexpr size_t kMostWords = 8;       // of a category, that one not said may be
constexpr double kNoMatter = 0.05;     // of the logarithm, by which they are apart
constexpr size_t kMostSamples = 4000;  // of a rehearsal: more would only take time

// What makes a fit: the same for recipes that give the same estimator from all rows.
std::string KeyOf(const Recipe& recipe) {
  return fmt::format("{} {} {} {} ", recipe.name, recipe.physical.pull, recipe.physical.own_level,
                     recipe.physical.even);
}

// The lean of least mean + median error on rows that were left out, the mean over draws.
double ChooseLean(std::span<const double> middles, std::span<const double> half_widths,
                  const Rehearsal& rehearsal, std::span<const int> parts, Seed seed) {
  constexpr double kLeans[] = {0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0};
  std::vector<std::vector<double>> said;
  for (const double lean : kLeans) {
    auto& by_lean = said.emplace_back(middles.begin(), middles.end());
    for (size_t i = 0; i < by_lean.size(); ++i) by_lean[i] -= BelowMiddle(lean, half_widths[i]);
  }
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto importance = DrawImportance(rehearsal, parts, seed.Stream(static_cast<uint64_t>(draw)));
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < said.size(); ++j) {
      const double loss = LossOf(said[j], rehearsal.measured, importance);
      if (loss >= 0.999 * least) continue;
      least = loss;
      best = kLeans[j];
    }
    sum += best;
  }
  return sum / kDraws;
}

// Those rows with `word` in the column.
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
  return {"auto",  "lr-sfs",      "lr-sfs-relative", "physical",
          "trees", "trees-shape", "neighbours",      "trees-neighbours"};
}

const Predictor::Answer& Predictor::AnswerOf(Question question) const {
  for (const Answer& answer : answers_) {
    if (answer.question == question) return answer;
  }
  return answers_.front();
}

double Predictor::WidenByCount(const Row& row) const {
  const double reach = AnswerOf(Question::kCount).reach;
  return reach > 0 ? std::max(1.0, known_.Doublings(row) / reach) : 1;
}

// What tells of a prediction's difficulty: the row, how far the candidates are apart, and what they say.
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
  if (!row.problem.empty()) {
    prediction.outside = row.problem;
    return prediction;
  }
  const Applicability::Place place = known_.PlaceOf(spec(), data_->encoder, facts_, row);
  if (place.is_refused) {
    prediction.outside = place.outside + ": nothing measured supports an answer";
    return prediction;
  }
  const Answer& answer = AnswerOf(place.question);
  const std::vector<float> numbers = data_->encoder.Coordinates(row);
  const std::vector<int> codes = data_->encoder.Codes(row);
  const View view{row, numbers, codes};
  double log_time = 0;
  std::vector<double> logs;
  for (const auto& [index, weight] : answer.mixture) {
    const Estimator& estimator = estimators_[static_cast<size_t>(index)];
    logs.push_back(estimator.LogTime(view));
    log_time += weight * logs.back();
    if (const Physical* physical = estimator.physical(); physical && prediction.shares.empty()) {
      prediction.shares = physical->Shares(row);
    }
  }
  // The lean was rehearsed with the interval's own width; how far a row is outside says nothing of its sign.
  const double rehearsed_half = answer.spread.HalfWidth(SpreadInput(view, logs));
  double half = place.widen * WidenByCount(row) * rehearsed_half;
  if (place.is_unheard) half = std::max(half, BorrowedHalfWidth());
  if (const auto shift = shifts_.find(row.hardware); shift != shifts_.end()) {
    log_time += shift->second.log_factor;
    half *= shift->second.narrower;
  }
  const auto target = [&](double log) { return TargetFromTime(spec(), row, std::exp(log)); };
  const double said = log_time - std::min(half, BelowMiddle(answer.lean, rehearsed_half));
  const double value = target(said), one = target(log_time - half), other = target(log_time + half);
  if (!(std::abs(log_time) <= kMostLogTime) || !std::isfinite(value) || !std::isfinite(one + other)) {
    prediction.outside = "the models do not give a number for this row";
    return prediction;
  }
  if (half > kGreatestHalf) {
    prediction.outside = fmt::format(
        "{}{}its interval would be from a thousandth to a thousand times: nothing measured "
        "supports an answer",
        place.outside, place.outside.empty() ? "" : "; ");
    return prediction;
  }
  prediction.regime = place.outside.empty() ? Regime::kInside : Regime::kOutside;
  prediction.outside = place.outside;
  prediction.time_ms = std::exp(said);
  prediction.middle_ms = std::exp(log_time);
  prediction.value = value;
  prediction.low = std::min(one, other);
  prediction.high = std::max(one, other);
  return prediction;
}

// A word that every row of the fit has and that is not said may be any that was measured: the interval
// reaches as much farther as those are apart.
Status Predictor::AllowForUnsaid(const Table& rows, std::span<const size_t> unsaid, size_t category,
                                 std::vector<Prediction>& predictions) const {
  const std::string& column = spec().categories[category].column;
  std::vector<double> apart(unsaid.size(), 0.0);
  for (const std::string& word : data_->encoder.MostCommon(category, kMostWords)) {
    const std::vector<Row> made =
        TRY(MakeRows(spec(), facts_, WithWord(rows, unsaid, column, word), WithTarget::kNo));
    for (size_t i = 0; i < made.size(); ++i) {
      const Prediction other = PredictRow(made[i]);
      if (other.middle_ms)
        apart[i] =
            std::max(apart[i], std::abs(std::log(*other.middle_ms / *predictions[unsaid[i]].middle_ms)));
    }
  }
  for (size_t i = 0; i < unsaid.size(); ++i) {
    Prediction& one = predictions[unsaid[i]];
    if (apart[i] < kNoMatter) continue;
    one.low = *one.low / std::exp(apart[i]);
    one.high = *one.high * std::exp(apart[i]);
    one.regime = Regime::kOutside;
    one.outside += fmt::format("{}{} is not said (its words are up to {:.2g} times apart)",
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
    std::vector<size_t> unsaid;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].categories[j].empty() && predictions[i].value) unsaid.push_back(i);
    }
    if (!unsaid.empty()) TRY_STATUS(AllowForUnsaid(rows, unsaid, j, predictions));
  }
  return predictions;
}

Result<std::vector<std::string>> Predictor::Calibrate(const Table& measured) {
  std::map<std::string, std::vector<double>> misses;
  std::vector<std::string> said;
  std::string problem;
  int64_t unusable = 0;
  for (const Row& row : TRY(MakeRows(spec(), facts_, measured, WithTarget::kYes))) {
    const Prediction prediction = PredictRow(row);
    if (!prediction.middle_ms) {
      if (unusable++ == 0) problem = fmt::format("the first: {}: {}", row.id, prediction.outside);
      continue;
    }
    const double miss = std::log(*row.time / *prediction.middle_ms);
    if (calibration_ && !known_.KnowsHardware(row.hardware) && !calibration_->IsPlausible(miss)) {
      said.push_back(
          fmt::format("{}: run {} is left out: it took {:.3g} times what is predicted: look at its unit",
                      row.hardware, row.id, std::exp(miss)));
    } else {
      misses[row.hardware].push_back(miss);
    }
  }
  if (misses.empty() && said.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no row can be used to calibrate{}{}", unusable > 0 ? "; " : "", problem));
  if (unusable > 0)
    said.push_back(fmt::format("{} of {} rows cannot be used; {}", unusable, measured.rows(), problem));
  for (const auto& [hardware, logs] : misses) {
    const auto n = std::ssize(logs);
    if (known_.KnowsHardware(hardware)) {
      said.push_back(fmt::format("{}: {} runs are not used: the fit knows this hardware", hardware, n));
    } else if (!calibration_ || !calibration_->helps()) {
      said.push_back(
          fmt::format("{}: {} runs are not used: on hardware left out that did not help", hardware, n));
    } else {
      shifts_[hardware] = {calibration_->Shift(logs), calibration_->Narrower(n)};
      said.push_back(fmt::format("{}: times {:+.1f} % by {} runs", hardware,
                                 100 * std::expm1(shifts_[hardware].log_factor), n));
    }
  }
  return said;
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

std::vector<Recipe> Predictor::RecipesFor(Question question, const std::vector<Fold>& folds,
                                          const FitOptions& options, Seed seed) const {
  const Groups groups = KnowsGroups(data_->rows, folds) ? Groups::kOwn : Groups::kCommon;
  std::vector<Recipe> recipes = Candidates(question, data_->rows.size(), groups);
  // With auto the second work's is there, too, to be compared with.
  std::erase_if(recipes, [&](const Recipe& recipe) {
    return options.estimator != "auto" && !BelongsTo(recipe, options.estimator);
  });
  // Those with each group's own weights, where there are, leave the least to be learned of others.
  const auto by_pull = std::ranges::min_element(
      recipes, {}, [](const Recipe& recipe) { return std::pair(!recipe.neighbours, recipe.physical.pull); });
  if (by_pull == recipes.end() || !by_pull->neighbours) return recipes;
  const Likeness likeness = TuneLikeness(*data_, Residuals(*data_, by_pull->physical), folds,
                                         {.threads = options.threads, .seed = seed});
  for (Recipe& recipe : recipes) {
    if (recipe.neighbours) recipe.likeness = likeness;
  }
  return recipes;
}

Status Predictor::LearnAnswer(Question question, const std::vector<Fold>& folds, const FitOptions& options) {
  const Seed seed = Seed(options.seed).Stream(ToString(question));
  const auto progress = [&](int64_t done, int64_t total) {
    if (options.progress)
      options.progress(fmt::format("{}: {}", spec().name, ToString(question)), done, total);
  };
  Rehearsal rehearsal = TRY(Rehearse(*data_, question, folds, RecipesFor(question, folds, options, seed),
                                     {.threads = options.threads, .seed = seed, .progress = progress}));
  if (question != Question::kInside) {
    // Rows that were left out together are not as many as they seem: the n of one group count as sqrt(n).
    rehearsal.importance = ImportanceOf(rehearsal.group, [](double n) { return 1 / std::sqrt(n); });
  }
  const std::vector<int> parts = PartsOf(rehearsal);
  rehearsal.weights =
      ChooseMixture(rehearsal, [&](const Recipe& recipe) { return BelongsTo(recipe, options.estimator); },
                    parts, {.threads = options.threads, .seed = seed.Stream("mixture")});

  Answer answer{.question = question};
  if (question == Question::kCount) answer.reach = Reach(data_->rows, folds);
  for (size_t r = 0; r < rehearsal.recipes.size(); ++r) {
    const Recipe& recipe = rehearsal.recipes[r];
    scores_.push_back({question, recipe.name, rehearsal.ScoreOf(r), rehearsal.weights[r]});
    if (rehearsal.weights[r] == 0) continue;
    // Those with neighbours were tuned for the question.
    const std::string key = KeyOf(recipe) + (recipe.neighbours ? std::string(ToString(question)) : "");
    answer.mixture.emplace_back(Want(recipe, key), rehearsal.weights[r]);
  }
  const std::vector<double> said = TRY(LearnSpread(rehearsal, parts, answer, seed.Stream("spread")));
  if (options.left_out) options.left_out(question, rehearsal.row, said, rehearsal.measured);
  answers_.push_back(std::move(answer));
  return {};
}

std::vector<int> Predictor::PartsOf(const Rehearsal& rehearsal) const {
  std::vector<std::string> names = rehearsal.group;
  for (size_t i = 0; i < names.size(); ++i) {
    if (rehearsal.question == Question::kInside) names[i] = fmt::format("{}", i);
    if (rehearsal.question == Question::kCount)
      names[i] = data_->rows[static_cast<size_t>(rehearsal.row[i])].hardware;
  }
  std::map<std::string_view, int> numbers;
  std::vector<int> parts;
  parts.reserve(names.size());
  for (const std::string& name : names)
    parts.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
  return parts;
}

Result<std::vector<double>> Predictor::LearnSpread(const Rehearsal& rehearsal, std::span<const int> parts,
                                                   Answer& answer, Seed seed) {
  const std::vector<double> mixture = rehearsal.Mixture();
  std::vector<double> misses;
  std::vector<float> inputs;
  for (size_t i = 0; i < mixture.size(); ++i) {
    const auto row = static_cast<size_t>(rehearsal.row[i]);
    std::vector<double> logs;
    for (size_t r = 0; r < rehearsal.weights.size(); ++r) {
      if (rehearsal.weights[r] > 0) logs.push_back(rehearsal.predicted[r][i]);
    }
    const auto x = SpreadInput({data_->rows[row], data_->numbers[row], data_->codes[row]}, logs);
    inputs.insert(inputs.end(), x.begin(), x.end());
    misses.push_back(mixture[i] - rehearsal.measured[i]);
  }
  const int columns = SpreadColumns(spec());
  const bool is_known = answer.question == Question::kInside || answer.question == Question::kCount;
  auto [spread, half_widths] = TRY(Spread::Learn(inputs, columns, misses, rehearsal.importance, parts,
                                                 is_known ? kCoverage : kCoverageOfNew, seed));

  // What two bounds have in common is how times go on, not chance.
  bool leans = answer.question != Question::kCount && estimator_ == "auto";  // the others are as published
  if (answer.question != Question::kInside) {
    // One group says nothing of how far another may be off.
    if (answer.question != Question::kCount &&
        std::ranges::adjacent_find(rehearsal.group, std::not_equal_to()) == rehearsal.group.end()) {
      spread = Spread::Constant(BorrowedHalfWidth());
      half_widths.assign(half_widths.size(), BorrowedHalfWidth());
      leans = false;
    }
    const double wider = ForAnotherGroup(misses, rehearsal.group);
    spread = spread.Times(wider);
    for (double& half : half_widths) half *= wider;
    if (answer.question == Question::kHardware) calibration_ = LearnCalibration(misses, rehearsal.group);
  }

  answer.spread = std::move(spread);
  if (leans) answer.lean = ChooseLean(mixture, half_widths, rehearsal, parts, seed.Stream("lean"));
  std::vector<double> said = mixture;
  for (size_t i = 0; i < said.size(); ++i) said[i] -= BelowMiddle(answer.lean, half_widths[i]);

  Rehearsed rehearsed{.question = answer.question, .score = ScoreOf(said, rehearsal.measured)};
  for (size_t i = 0; i < misses.size(); ++i) {
    rehearsed.coverage +=
        (std::abs(misses[i]) <= half_widths[i] ? 1.0 : 0.0) / static_cast<double>(misses.size());
  }
  rehearsed.half_width = Median(std::move(half_widths));
  rehearsed_.push_back(rehearsed);
  return said;
}

double Predictor::BorrowedHalfWidth() const {
  double half = 0.7;
  for (const CandidateScore& score : scores_) {
    if (score.recipe == "physical-own" || score.recipe == "physical")
      half = std::max(half, std::log1p(score.score.p90));
  }
  return kBorrowed * half;
}

// A question that the rows cannot rehearse is answered by the physical model, with the widest interval there
// is, wider still.
void Predictor::Borrow(Question question) {
  Answer answer{.question = question};
  const Recipe recipe{.name = "physical-own"};
  answer.mixture.emplace_back(Want(recipe, KeyOf(recipe)), 1.0);
  answer.spread = Spread::Constant(BorrowedHalfWidth());
  answers_.push_back(std::move(answer));
}

Status Predictor::LearnAnswers(const FitOptions& options) {
  std::vector<Question> borrowing;
  for (const Question question : kQuestions) {
    const std::vector<Fold> folds = Thin(MakeFolds(data_->rows, question, Seed(options.seed)), question,
                                         kMostSamples, Seed(options.seed));
    if (!folds.empty() && Contains(spec().questions, std::string(ToString(question)))) {
      TRY_STATUS(LearnAnswer(question, folds, options));
    } else {
      borrowing.push_back(question);
    }
  }
  for (const Question question : borrowing) Borrow(question);  // by what the others learned
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
                fmt::format("a fit needs {} rows that can be used, there are {}", kFewestRows, rows.size()));
  }
  Predictor predictor;
  predictor.data_ = std::make_shared<const Data>(Data::Make(std::move(spec), std::move(rows)));
  predictor.facts_ = std::move(facts);
  predictor.known_ = Applicability::Learn(*predictor.data_);
  predictor.seed_ = options.seed;
  predictor.estimator_ = options.estimator;
  TRY_STATUS(predictor.LearnAnswers(options));
  return predictor;
}

}  // namespace weir::predict
