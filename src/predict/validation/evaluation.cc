#include "predict/validation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/shuffle.h"
#include "stats/quantile.h"

namespace weir::predict {
namespace {

using results::FitResult;

constexpr int64_t kFewestOfPart = 10, kProfileParts = 12;
constexpr size_t kWorst = 15;
constexpr size_t kMostPredicted = 1000;
constexpr size_t kFewestLearned = 40;

double LogRatio(const Case& one) { return std::log(one.predicted_ms / one.measured_ms); }

// REQUIRES: sorted, not empty.
double QuantileOf(std::span<const double> sorted, double p) {
  return sorted[static_cast<size_t>(stats::NearestRank(p, std::ssize(sorted)) - 1)];
}

FitResult::LearningPoint Judge(const Spec& spec, std::span<const Row* const> asked,
                               std::span<const Prediction> predictions) {
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
  const auto answered = static_cast<double>(predicted.size());
  return {.score = ScoreOf(predicted, measured),
          .answered_percent = 100 * answered / static_cast<double>(asked.size()),
          .interval_coverage_percent = 100 * held / std::max(answered, 1.0)};
}

}  // namespace

std::vector<FitResult::Group> ScoreByGroup(std::span<const Case> cases, std::string (*name_of)(const Case&)) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> groups;
  for (const Case& one : cases) {
    auto& [predicted, measured] = groups[name_of(one)];
    predicted.push_back(std::log(one.predicted_ms));
    measured.push_back(std::log(one.measured_ms));
  }
  std::vector<FitResult::Group> scores;
  for (const auto& [name, logs] : groups)
    scores.push_back({.score = ScoreOf(logs.first, logs.second), .name = name});
  std::ranges::stable_sort(scores, std::greater(),
                           [](const FitResult::Group& group) { return group.score.log_mean_percent; });
  return scores;
}

std::vector<FitResult::ProfilePoint> ErrorProfile(std::span<const Case> cases, int64_t parts) {
  std::vector<const Case*> sorted;
  for (const Case& one : cases) sorted.push_back(&one);
  std::ranges::stable_sort(sorted, {}, &Case::measured_ms);
  const int64_t count = std::ssize(sorted);
  parts = std::min(parts, count / kFewestOfPart);
  std::vector<FitResult::ProfilePoint> profile;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = part * count / parts, end = (part + 1) * count / parts;
    std::vector<double> times, ratios;
    for (int64_t i = begin; i < end; ++i) {
      const Case& one = *sorted[static_cast<size_t>(i)];
      times.push_back(one.measured_ms);
      ratios.push_back(one.predicted_ms / one.measured_ms);
    }
    std::ranges::sort(ratios);
    profile.push_back({.measured_ms = QuantileOf(times, 0.5),
                       .predicted_over_measured = QuantileOf(ratios, 0.5),
                       .low = QuantileOf(ratios, 0.05),
                       .high = QuantileOf(ratios, 0.95),
                       .rows = end - begin});
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

void AddCases(const Spec& spec, std::span<const Case> cases, FitResult::Split& split) {
  if (spec.hardware) split.by_hardware = ScoreByGroup(cases, [](const Case& one) { return one.hardware; });
  if (spec.networks) split.by_network = ScoreByGroup(cases, [](const Case& one) { return one.network; });
  if (!spec.devices.empty())
    split.by_devices = ScoreByGroup(cases, [](const Case& one) { return fmt::format("{:g}", one.devices); });
  split.profile = ErrorProfile(cases, kProfileParts);
  split.worst = WorstCases(cases, kWorst);
}

Result<std::vector<FitResult::LearningPoint>> LearningCurve(const LearningRows& from,
                                                            const FitOptions& options) {
  const Seed seed = Seed(options.seed).Stream("learning");
  const std::vector<Fold> folds = MakeFolds(from.rows, Split::kInside, seed);
  std::vector<FitResult::LearningPoint> curve;
  if (folds.empty()) return curve;
  // In an order by chance any beginning is a sample.
  std::vector<int> learned = folds.front().train, asked = folds.front().test;
  Random random = seed.MakeRandom();
  Shuffle(learned, random);
  Shuffle(asked, random);
  asked.resize(std::min(asked.size(), kMostPredicted));
  std::vector<const Row*> splits;
  std::vector<int64_t> places;
  for (const int i : asked) {
    splits.push_back(&from.rows[static_cast<size_t>(i)]);
    places.push_back(splits.back()->place);
  }
  const Table table(PickRows(from.table.csv(), places));

  Spec spec = from.spec;
  spec.splits = {std::string(ToString(Split::kInside))};
  FitOptions fit_options = options;
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
    FitResult::LearningPoint point = Judge(spec, splits, TRY(predictor.Predict(table)));
    point.fitted = static_cast<int64_t>(count);
    if (point.score.rows > 0) curve.push_back(point);
  }
  return curve;
}

}  // namespace weir::predict
