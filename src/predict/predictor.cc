#include "predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/contains.h"
#include "predict/validation/checks.h"

namespace weir::predict {
namespace {

const double kGreatestHalf = std::log(1000.0);  // half-width of an interval; a wider one is no answer
constexpr size_t kMostWords = 8;                // of a category, that an unknown one may be
constexpr double kFartherThanUsual = 1.25;      // of a variance
constexpr double kNoMatter = 0.05;              // difference of logarithms

// Names what makes two rows one configuration, on whichever machine.
std::string ConfigurationOf(const Spec& spec, const Row& row) {
  std::string key = fmt::format("{}|{}|{}", row.hardware, row.network, row.devices);
  for (size_t j = 0; j < spec.numbers.size(); ++j) key += fmt::format("|{}", row.numbers[j]);
  for (size_t j = 0; j < spec.categories.size(); ++j) {
    if (spec.categories[j].side != Side::kMachine) key += "|" + row.categories[j];
  }
  return key;
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

Predictor::Guess Predictor::GuessOf(const Model& model, const View& view) {
  const Expected time = model.estimator.LogTime(view);
  std::vector<float> numbers;
  if (model.estimator.neighbours() != nullptr)
    numbers = model.estimator.likeness().Numbers(view.numbers, view.row.terms);
  return {.log_time = time.mean,
          .half = model.spread.HalfWidth(numbers, view.codes, time.variance),
          .variance = time.variance};
}

Prediction Predictor::PredictRow(const Row& row, const std::string& impossible) const {
  Prediction prediction{.id = row.id};
  const Applicability::Position position = known_.PositionOf(spec(), data_->encoder, row);
  prediction.outside = position.outside;
  if (!impossible.empty()) {
    prediction.outside = "impossible: " + impossible;
    return prediction;
  }
  if (!row.problem.empty() || !position.refusal.empty()) {
    const bool both = !row.problem.empty() && !position.refusal.empty();
    prediction.outside = row.problem + (both ? "; " : "") + position.refusal;
    return prediction;
  }
  const std::vector<float> numbers = data_->encoder.Coordinates(row);
  const std::vector<int> codes = data_->encoder.Codes(row);
  const View view{row, numbers, codes};
  const Model& model = ModelOf(position.split);
  auto [log_time, half, variance] = GuessOf(model, view);
  prediction.shares = model.estimator.Shares(row);
  // What was never measured is no better known than what was.
  if (position.split != Split::kInside) half = std::max(half, GuessOf(ModelOf(Split::kInside), view).half);
  // No row is near in what its terms and numbers say: the correction does not know it, only the physics does.
  if (const double times = model.spread.TimesFarther(variance);
      position.outside.empty() && times > kFartherThanUsual) {
    prediction.outside =
        fmt::format("no measured row is like it: {:.2g} times farther off than 99 % of them", times);
    half = std::max(half, worst_physical_);
  }
  // A new network on new hardware is no better known than on hardware that was measured.
  if (position.is_new_network) half = std::max(half, GuessOf(ModelOf(Split::kNetwork), view).half);
  half *= position.widen * WidenByCount(row);
  if (position.is_unvalidated) half = std::max(half, BorrowedHalfWidth());
  half += position.add;
  for (const std::string& level : shifts_.empty() ? std::vector<std::string>() : LevelsOf(row)) {
    const auto shift = shifts_.find(level);
    if (shift == shifts_.end()) continue;
    log_time += shift->second.log_factor;
    half *= shift->second.wider;
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
  prediction.regime = prediction.outside.empty() ? Regime::kInside : Regime::kOutside;
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
  const std::vector<std::string> impossible = ImpossibleFacts(spec(), facts_, rows);
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < made.size(); ++i) predictions.push_back(PredictRow(made[i], impossible[i]));
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

std::vector<std::string> Predictor::LevelsOf(const Row& row) const {
  return {row.hardware, fmt::format("{}|{}", row.hardware, row.network_group), ConfigurationOf(spec(), row)};
}

// Learns the shift of each level in turn, from what the levels above leave. A level's units are the means of
// the next one's, so that many runs of one network do not decide for all networks.
void Predictor::LearnShifts(const std::vector<Run>& runs) {
  Calibration usual = calibration_.value_or(Calibration());
  const size_t levels = runs.front().levels.size();
  for (size_t level = 0; level < levels; ++level, usual = usual.Below()) {
    std::map<std::string, std::map<std::string, std::vector<double>>> units;
    for (size_t i = 0; i < runs.size(); ++i) {
      double left = runs[i].miss;
      for (size_t above = 0; above < level; ++above) left -= shifts_[runs[i].levels[above]].log_factor;
      const std::string& unit = level + 1 < levels ? runs[i].levels[level + 1] : std::to_string(i);
      units[runs[i].levels[level]][unit].push_back(left);
    }
    for (const auto& [name, by_unit] : units) {
      std::vector<double> means;
      for (const auto& [unit, misses] : by_unit)
        means.push_back(std::reduce(misses.begin(), misses.end()) / static_cast<double>(misses.size()));
      const Calibration::Shift shift = usual.Of(means);
      const double wider = level == 0 ? std::sqrt(shift.variance / usual.Of({}).variance) : 1;
      shifts_[name] = {shift.log, known_.KnowsHardware(name) ? std::max(1.0, wider) : wider};
    }
  }
}

Result<std::vector<std::string>> Predictor::Calibrate(const Table& measured) {
  std::vector<Run> runs;
  std::map<std::string, std::vector<double>> of_hardware;
  std::vector<std::string> lines;
  std::string problem;
  int64_t unusable = 0;
  const Calibration usual = calibration_.value_or(Calibration());
  for (const Row& row : TRY(MakeRows(spec(), facts_, measured, WithTarget::kYes))) {
    const Prediction prediction = PredictRow(row);
    if (!prediction.time_ms) {
      if (unusable++ == 0) problem = fmt::format("the first: {}: {}", row.id, prediction.outside);
      continue;
    }
    const double miss = std::log(*row.time / *prediction.time_ms);
    if (!usual.IsPlausible(miss)) {
      lines.push_back(
          fmt::format("{}: run {} is left out: it took {:.3g} times the prediction: check its unit",
                      row.hardware, row.id, std::exp(miss)));
      continue;
    }
    runs.push_back({LevelsOf(row), miss});
    of_hardware[row.hardware].push_back(miss);
  }
  if (runs.empty() && lines.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no row can be used to calibrate{}{}", unusable > 0 ? "; " : "", problem));
  if (unusable > 0)
    lines.push_back(fmt::format("{} of {} rows cannot be used; {}", unusable, measured.rows(), problem));
  if (!runs.empty()) LearnShifts(runs);
  for (const auto& [hardware, misses] : of_hardware) {
    const double mean = std::reduce(misses.begin(), misses.end()) / static_cast<double>(misses.size());
    lines.push_back(
        fmt::format("{}: {} runs took {:.3g} times the prediction: times {:+.1f} % on all its rows, "
                    "and as measured on what was run",
                    hardware, misses.size(), std::exp(mean), 100 * std::expm1(shifts_[hardware].log_factor)));
  }
  return lines;
}

}  // namespace weir::predict
