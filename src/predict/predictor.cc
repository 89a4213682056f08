#include "predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/contains.h"

namespace weir::predict {
namespace {

const double kGreatestHalf = std::log(1000.0);  // half-width of an interval; a wider one is no answer
constexpr size_t kMostWords = 8;                // of a category, that an unknown one may be
constexpr double kNoMatter = 0.05;              // difference of logarithms
constexpr double kSurprise = 3;                 // standard deviations

// Returns the calibration for runs of one hardware. If their mean is three standard deviations from what
// other hardware makes likely, this one is of another kind, and the runs tell how far such hardware is off.
Calibration ForRuns(Calibration usual, std::span<const double> log_measured_over_predicted) {
  const auto n = static_cast<double>(log_measured_over_predicted.size());
  const double mean = std::reduce(log_measured_over_predicted.begin(), log_measured_over_predicted.end()) / n;
  const double noise = usual.own * usual.own / n;
  if (std::abs(mean) <= kSurprise * std::sqrt(usual.common * usual.common + noise)) return usual;
  usual.common = std::sqrt(mean * mean - noise);
  usual.k = usual.own * usual.own / (usual.common * usual.common);
  return usual;
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

Predictor::Guess Predictor::GuessOf(const Model& model, const View& view) const {
  Guess guess;
  std::vector<double> logs;
  for (const auto& [index, weight] : model.mixture) {
    const Estimator& estimator = estimators_[static_cast<size_t>(index)];
    logs.push_back(estimator.LogTime(view));
    guess.log_time += weight * logs.back();
    if (const Physical* physical = estimator.physical(); physical && guess.shares.empty())
      guess.shares = physical->Shares(view.row);
  }
  guess.half = model.spread.HalfWidth(SpreadInput(view, logs));
  return guess;
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
  const std::vector<float> numbers = data_->encoder.Coordinates(row);
  const std::vector<int> codes = data_->encoder.Codes(row);
  const View view{row, numbers, codes};
  const Guess guess = GuessOf(ModelOf(position.split), view);
  double log_time = guess.log_time, half = guess.half;
  prediction.shares = guess.shares;
  // A new network on new hardware is no better known than on hardware that was measured.
  if (position.is_new_network) half = std::max(half, GuessOf(ModelOf(Split::kNetwork), view).half);
  half *= position.widen * WidenByCount(row);
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
Status Predictor::WidenForUnknownWord(const Table& rows, std::span<const int64_t> unknown, size_t category,
                                      std::vector<Prediction>& predictions) const {
  const std::string& column = spec().categories[category].column;
  const Csv asked = PickRows(rows.csv(), unknown);
  std::vector<double> apart(unknown.size(), 0.0);
  for (const std::string& word : data_->encoder.MostCommon(category, kMostWords)) {
    const std::vector<Row> made =
        TRY(MakeRows(spec(), facts_, Table(WithColumn(asked, column, word)), WithTarget::kNo));
    for (size_t i = 0; i < made.size(); ++i) {
      const Prediction other = PredictRow(made[i]);
      if (other.time_ms)
        apart[i] = std::max(
            apart[i],
            std::abs(std::log(*other.time_ms / *predictions[static_cast<size_t>(unknown[i])].time_ms)));
    }
  }
  for (size_t i = 0; i < unknown.size(); ++i) {
    Prediction& one = predictions[static_cast<size_t>(unknown[i])];
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
    std::vector<int64_t> unknown;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].categories[j].empty() && predictions[i].value) unknown.push_back(static_cast<int64_t>(i));
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
    const Calibration known = calibration_.value_or(Calibration()), given = ForRuns(known, logs);
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

}  // namespace weir::predict
