#include "predict/validation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "stats/quantile.h"

namespace weir::predict {
namespace {

constexpr int64_t kFewestOfPart = 10;
constexpr size_t kMostPredicted = 1000;
constexpr size_t kFewestLearned = 40;

double LogRatio(const Case& one) { return std::log(one.predicted / one.measured); }

// REQUIRES: sorted, not empty.
double QuantileOf(std::span<const double> sorted, double p) {
  return sorted[static_cast<size_t>(stats::NearestRank(p, std::ssize(sorted)) - 1)];
}

Score ScoreOfCases(std::span<const Case* const> cases) {
  std::vector<double> predicted, measured;
  for (const Case* one : cases) {
    predicted.push_back(std::log(one->predicted));
    measured.push_back(std::log(one->measured));
  }
  return ScoreOf(predicted, measured);
}

// Returns `rows` in random order, so that any beginning is a sample.
std::vector<int> Drawn(const std::vector<int>& rows, Random random) {
  std::vector<std::pair<uint64_t, int>> drawn;
  for (const int row : rows) drawn.emplace_back(random.Next(), row);
  std::ranges::sort(drawn);
  std::vector<int> order;
  for (const auto& [draw, row] : drawn) order.push_back(row);
  return order;
}

Table Picked(const Table& table, std::span<const Row* const> rows) {
  Csv csv{.columns = table.csv().columns, .cells = {}, .lines = {}};
  for (const Row* row : rows) {
    const auto cells = table.csv().row(row->place);
    csv.cells.insert(csv.cells.end(), cells.begin(), cells.end());
    csv.lines.push_back(table.csv().lines[static_cast<size_t>(row->place)]);
  }
  return Table(std::move(csv));
}

LearningPoint Judge(const Spec& spec, std::span<const Row* const> asked,
                    std::span<const Prediction> predictions) {
  LearningPoint point;
  std::vector<double> predicted, measured;
  double held = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const Prediction& p = predictions[i];
    if (!p.time_ms) continue;
    predicted.push_back(std::log(*p.time_ms));
    measured.push_back(std::log(*asked[i]->time));
    const double target = TargetFromTime(spec, *asked[i], *asked[i]->time);
    if (target >= *p.low && target <= *p.high) held += 1;
  }
  point.score = ScoreOf(predicted, measured);
  point.answered = static_cast<double>(predicted.size()) / static_cast<double>(asked.size());
  if (!predicted.empty()) point.coverage = held / static_cast<double>(predicted.size());
  return point;
}

}  // namespace

std::vector<GroupScore> ScoreByGroup(std::span<const Case> cases, std::string (*name_of)(const Case&)) {
  std::map<std::string, std::vector<const Case*>> groups;
  for (const Case& one : cases) groups[name_of(one)].push_back(&one);
  std::vector<GroupScore> scores;
  for (const auto& [name, members] : groups) scores.push_back({name, ScoreOfCases(members)});
  std::ranges::stable_sort(scores,
                           [](const auto& a, const auto& b) { return a.score.log_mean > b.score.log_mean; });
  return scores;
}

std::vector<ProfilePoint> ErrorProfile(std::span<const Case> cases, int64_t parts) {
  std::vector<const Case*> sorted;
  for (const Case& one : cases) sorted.push_back(&one);
  std::ranges::stable_sort(sorted, {}, [](const Case* one) { return one->measured; });
  const int64_t count = std::ssize(sorted);
  parts = std::min(parts, count / kFewestOfPart);
  std::vector<ProfilePoint> profile;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = part * count / parts, end = (part + 1) * count / parts;
    std::vector<double> times, ratios;
    for (int64_t i = begin; i < end; ++i) {
      const Case& one = *sorted[static_cast<size_t>(i)];
      times.push_back(one.measured);
      ratios.push_back(one.predicted / one.measured);
    }
    std::ranges::sort(ratios);
    profile.push_back({.measured = QuantileOf(times, 0.5),
                       .low = QuantileOf(ratios, 0.05),
                       .median = QuantileOf(ratios, 0.5),
                       .high = QuantileOf(ratios, 0.95),
                       .cases = end - begin});
  }
  return profile;
}

std::vector<Case> WorstCases(std::span<const Case> cases, size_t most) {
  std::vector<Case> worst(cases.begin(), cases.end());
  std::ranges::stable_sort(
      worst, [](const Case& a, const Case& b) { return std::abs(LogRatio(a)) > std::abs(LogRatio(b)); });
  worst.resize(std::min(most, worst.size()));
  return worst;
}

Result<std::vector<LearningPoint>> LearningCurve(const LearningRows& from, const FitOptions& options) {
  const Seed seed = Seed(options.seed).Stream("learning");
  const std::vector<Fold> folds = MakeFolds(from.rows, Split::kInside, seed);
  std::vector<LearningPoint> curve;
  if (folds.empty()) return curve;
  const std::vector<int> learned = Drawn(folds.front().train, seed.Stream("train").MakeRandom());
  std::vector<int> asked = Drawn(folds.front().test, seed.Stream("test").MakeRandom());
  asked.resize(std::min(asked.size(), kMostPredicted));
  std::vector<const Row*> splits;
  for (const int i : asked) splits.push_back(&from.rows[static_cast<size_t>(i)]);
  const Table table = Picked(from.table, splits);

  Spec spec = from.spec;
  spec.splits = {std::string(ToString(Split::kInside))};
  FitOptions fit_options = options;
  fit_options.left_out = nullptr;
  for (const size_t share : {8, 4, 2, 1}) {
    const size_t count = learned.size() / share;
    if (count < kFewestLearned) continue;
    if (options.progress) {
      fit_options.progress = [&](const std::string& what, int64_t done, int64_t total) {
        options.progress(fmt::format("learning curve, {} rows, {}", count, what), done, total);
      };
    }
    std::vector<Row> rows;
    for (const int i : std::span(learned).first(count)) rows.push_back(from.rows[static_cast<size_t>(i)]);
    const Predictor predictor = TRY(Predictor::Fit(spec, from.facts, std::move(rows), fit_options));
    LearningPoint point = Judge(spec, splits, TRY(predictor.Predict(table)));
    point.rows = static_cast<int64_t>(count);
    if (point.score.rows > 0) curve.push_back(point);
  }
  return curve;
}

}  // namespace weir::predict
