// The models by themselves, on rows whose law is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/seed.h"
#include "predict/estimators/neighbours.h"
#include "predict/estimators/physical.h"
#include "predict/estimators/recipes.h"
#include "predict/interval/spread.h"
#include "predict/predictor_file.h"
#include "predict/validation/cross_validation.h"

namespace weir::predict {
namespace {

std::vector<int> All(size_t n) {
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Row TermsRow(std::vector<double> terms, double time, std::string group = "") {
  Row row;
  row.terms = std::move(terms);
  row.time = time;
  row.group = std::move(group);
  return row;
}

TEST(Physical, FindsTheWeightsOfAnExactLaw) {
  Random random(1);
  std::vector<Row> rows;
  for (int i = 0; i < 80; ++i) {
    const std::vector<double> t = {random.Uniform(0.1, 9), random.Uniform(0.1, 9), random.Uniform(0.1, 9)};
    rows.push_back(TermsRow(t, 2 * t[0] + 0.5 * t[2]));
  }
  const Physical physical = Physical::Fit(rows, All(rows.size()), {.pull = INFINITY});
  EXPECT_NEAR(physical.weights()[0], 2, 1e-3);
  EXPECT_NEAR(physical.weights()[1], 0, 1e-3);
  EXPECT_NEAR(physical.weights()[2], 0.5, 1e-3);
  const Row row = TermsRow({1, 1, 1}, 1);
  EXPECT_NEAR(physical.Time(row), 2.5, 1e-3);
  EXPECT_NEAR(physical.Shares(row)[0], 0.8, 1e-3);
}

TEST(Physical, NoWeightIsNegativeWhereLeastSquaresWouldMakeItSo) {
  // time falls as the second term grows.
  std::vector<Row> rows;
  for (int i = 1; i <= 40; ++i) rows.push_back(TermsRow({1, i * 0.02}, 2 - i * 0.02));
  const Physical physical = Physical::Fit(rows, All(rows.size()), {.pull = INFINITY});
  for (const double weight : physical.weights()) EXPECT_GE(weight, 0);
  EXPECT_EQ(physical.weights()[1], 0);
}

TEST(Physical, AFewWrongRowsDoNotDecide) {
  std::vector<Row> rows;
  for (int i = 1; i <= 50; ++i) rows.push_back(TermsRow({i * 0.1}, i * 0.1 * 3));
  rows[10].time = *rows[10].time * 1000;
  rows[30].time = *rows[30].time * 1000;
  EXPECT_NEAR(Physical::Fit(rows, All(rows.size()), {.pull = INFINITY}).weights()[0], 3, 0.15);
}

TEST(Physical, EvenlyEveryHardwareSaysAboutAsMuch) {
  std::vector<Row> rows;
  for (int i = 1; i <= 100; ++i) rows.push_back(TermsRow({i * 0.1}, i * 0.1));
  for (int i = 1; i <= 5; ++i) {
    rows.push_back(TermsRow({i * 0.1}, i * 0.1 * 1.5));
    rows.back().hardware = "rare";
  }
  EXPECT_NEAR(Physical::Fit(rows, All(rows.size()), {.pull = INFINITY}).weights()[0], 1.02, 0.01);
  // Pulls the logarithm of 1.5 by 5 / 6 to 100 / 101.
  EXPECT_NEAR(Physical::Fit(rows, All(rows.size()), {.pull = INFINITY, .even = true}).weights()[0],
              std::pow(1.5, 5.0 / 6 / (5.0 / 6 + 100.0 / 101)), 0.01);
}

// A row's logarithm, taken as linear, asks for less than no time.
TEST(Physical, AGroupFarFasterThanTheOthersIsFitted) {
  std::vector<Row> rows;
  for (int i = 1; i <= 200; ++i) rows.push_back(TermsRow({i * 0.1, 1}, 2 * i + 3, "slow"));
  for (int i = 1; i <= 40; ++i) rows.push_back(TermsRow({i * 0.1, 1}, i * 0.1 + 0.15, "fast"));
  const Physical physical = Physical::Fit(rows, All(rows.size()), {.pull = 3});
  EXPECT_NEAR(physical.Time(TermsRow({2, 1}, 1, "fast")), 2.15, 0.15);
  EXPECT_NEAR(physical.Time(TermsRow({2, 1}, 1, "slow")), 43, 2);
}

TEST(Physical, AGroupWithFewRowsHasItsOwnLevelAndIsMadeOfWhatTheOthersAre) {
  std::vector<Row> rows;
  Random random(5);
  const auto any = [&] { return std::vector<double>{random.Uniform(0.1, 3), random.Uniform(0.1, 3)}; };
  for (int i = 1; i <= 60; ++i) {
    const auto terms = any();
    rows.push_back(TermsRow(terms, terms[0] + terms[1], "many"));
  }
  for (int i = 1; i <= 60; ++i) {
    const auto terms = any();
    rows.push_back(TermsRow(terms, 2 * terms[0], "other"));
  }
  for (int i = 1; i <= 3; ++i) rows.push_back(TermsRow({1, 1}, 8, "few"));
  const Physical physical = Physical::Fit(rows, All(rows.size()), {.pull = 3});
  const auto time = [&](std::vector<double> terms, const char* group) {
    return physical.Time(TermsRow(std::move(terms), 1, group));
  };
  EXPECT_NEAR(time({1, 1}, "few"), 8, 1);
  const double common = time({2, 0}, "never seen") / time({1, 1}, "never seen");
  EXPECT_NEAR(time({2, 0}, "few") / time({1, 1}, "few"), common, 0.2);
  EXPECT_NEAR(time({2, 0}, "other") / time({1, 1}, "other"), 2, 0.1);
}

Points Line(const std::vector<float>& at) {
  Points points{.number_sides = {Side::kRun}};
  for (const float x : at) points.Add(std::vector<float>{x}, {});
  return points;
}

TEST(Neighbours, IsKrigingByHand) {
  // Two points at 0 and 1, kernel exp(-|d|) (the other parts 0), noise 0.5: K = [[1.5, e^-1], [e^-1, 1.5]].
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.5};
  const Neighbours neighbours(Line({0, 1}), {2, -1}, kernel, 2);
  const double e = std::exp(-1), determinant = 1.5 * 1.5 - e * e;
  const double a = (1.5 * 2 - e * -1) / determinant, b = (1.5 * -1 - e * 2) / determinant;
  EXPECT_NEAR(neighbours.At(std::vector<float>{0.25F}, {}).mean, a * std::exp(-0.25) + b * std::exp(-0.75),
              1e-9);
}

TEST(Neighbours, AreSureWhereARowIsAndLeastSureFarFromAll) {
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.5};
  const Neighbours neighbours(Line({0}), {2}, kernel, 2);
  EXPECT_NEAR(neighbours.At(std::vector<float>{0}, {}).variance, 1.5 - 1 / 1.5, 1e-9);
  EXPECT_NEAR(neighbours.At(std::vector<float>{60}, {}).variance, 1.5, 1e-9);
}

TEST(Neighbours, FarFromAllSayNothing) {
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.01};
  const Neighbours neighbours(Line({0, 1, 2}), {5, 5, 5}, kernel, 3);
  EXPECT_NEAR(neighbours.At(std::vector<float>{60}, {}).mean, 0, 1e-9);
  EXPECT_NEAR(neighbours.At(std::vector<float>{1}, {}).mean, 5, 0.2);
}

TEST(Neighbours, LeavesOutWhatMayNotBeUsed) {
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.01};
  const Neighbours neighbours(Line({0, 0}), {1, 3}, kernel, 2);
  const std::vector<char> without_second = {0, 1};
  EXPECT_NEAR(neighbours.At(std::vector<float>{0}, {}, without_second).mean, 1, 0.02);
}

TEST(Neighbours, WhatANetworkDoesIsKnownOnHardwareNeverSeen) {
  Points points{.category_sides = {Side::kNetwork, Side::kHardware}};
  std::vector<double> values;
  for (int network = 0; network < 2; ++network) {
    for (int gpu = 0; gpu < 6; ++gpu) {
      points.Add({}, std::vector<int>{network, gpu});
      values.push_back(network == 0 ? 0.5 : -0.5);
    }
  }
  const Neighbours neighbours(points, values, {.category_weights = {5, 5}, .noise = 0.01}, 12);
  // By hand, without what exp(-5) adds: covariances are 1.91 with itself, 0.6 in the network, 0.4 on the same
  // hardware, 0.1 else. The values are +-0.5 times an eigenvector of 1.91 + 5 * 0.6 - 0.4 - 5 * 0.1 = 4.01,
  // and the row asked for has 0.6 with its network and 0.1 with the other.
  const double expected = 0.5 * 6 * (0.6 - 0.1) / 4.01;
  EXPECT_NEAR(neighbours.At({}, std::vector<int>{0, -1}).mean, expected, 0.01);
  EXPECT_NEAR(neighbours.At({}, std::vector<int>{1, -1}).mean, -expected, 0.01);
}

// Rows with one number, x, and one term that is always 1: what is left of log(time) is the miss.
Data DataOf(const std::vector<double>& x) {
  const auto spec = ParseSpec(R"(
predict: made
rows: made.csv
id: row_id
target: {column: time, kind: time}
terms: {one: 1}
numbers: {run: [x]}
)");
  std::vector<Row> rows;
  for (size_t i = 0; i < x.size(); ++i) {
    Row& row = rows.emplace_back();
    row.terms = {1};
    row.numbers = {x[i]};
    row.time = 1;
  }
  return Data::Make(*spec, std::move(rows));
}

Estimator NeighboursOf(const Data& data) {
  Recipe recipe = RecipeOf(data.spec, kNeighbours, Split::kInside, Groups::kCommon);
  recipe.kernel = Kernel{.number_weights = {}, .category_weights = {}, .noise = 0.05};
  return Estimator::Fit(data, All(data.rows.size()), recipe, Seed(1));
}

TEST(Spread, HoldsTheShareAskedForOnRowsItNeverSaw) {
  // Misses of which a half is ten times as large as the other; x tells which.
  std::vector<double> x;
  std::vector<LeftOut> samples;
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    x.push_back(i % 2 == 0 ? -9 : 9);
    samples.push_back(
        {.row = i, .group = "0", .miss = random.Normal() * (i % 2 == 0 ? 0.01 : 0.1), .variance = 1});
  }
  const Data data = DataOf(x);
  const Estimator estimator = NeighboursOf(data);
  const Spread::Learned learned = Spread::Learn(estimator, data, samples, {.coverage = 0.9});
  const auto half = [&](int row) {
    const View view = data.ViewOf(row);
    return learned.spread.HalfWidth(estimator.likeness().Numbers(view.numbers, view.row.terms), view.codes,
                                    1);
  };
  int held = 0;
  for (int i = 0; i < 2000; ++i)
    held += std::abs(random.Normal() * (i % 2 == 0 ? 0.01 : 0.1)) <= half(i % 2) ? 1 : 0;
  EXPECT_NEAR(held / 2000.0, 0.9, 0.03);
  // 1.645 standard deviations hold 90 % of a normal distribution.
  EXPECT_NEAR(half(1), 0.1645, 0.05);
  EXPECT_LT(half(0), 0.06);
  EXPECT_LT(learned.score_of_constant, 0.9);
}

TEST(Spread, GrowsWithTheDistanceFromAllRows) {
  std::vector<double> x;
  std::vector<LeftOut> samples;
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    x.push_back(random.Normal());
    samples.push_back({.row = i, .group = "0", .miss = 0.1 * random.Normal(), .variance = 0.1});
  }
  const Data data = DataOf(x);
  const Estimator estimator = NeighboursOf(data);
  const Spread spread = Spread::Learn(estimator, data, samples, {}).spread;
  const std::vector<float> numbers =
      estimator.likeness().Numbers(std::vector<float>{0}, std::vector<double>{1});
  EXPECT_NEAR(spread.HalfWidth(numbers, {}, 1.6) / spread.HalfWidth(numbers, {}, 0.1), 2, 1e-9);
}

TEST(Spread, OfFewSamplesIsTheConformalQuantile) {
  // ceil(10 * 0.8) = 8th of 9 sizes.
  std::vector<LeftOut> samples;
  for (const double miss : {0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9})
    samples.push_back({.row = 0, .group = "0", .miss = miss, .variance = 1});
  const Data data = DataOf({0, 1});
  const auto learned = Spread::Learn(NeighboursOf(data), data, samples, {.coverage = 0.8});
  EXPECT_DOUBLE_EQ(learned.spread.HalfWidth({}, {}, 1), 0.8);
  EXPECT_EQ(learned.half_widths, std::vector<double>(9, 0.8));
}

TEST(Spread, OfANewGroupHoldsMostGroupsWhole) {
  // Ten groups of ten rows; each group errs as one, by 0.01 to 0.10. Nine of eleven to come are within 0.09,
  // and two groups more may add a fifth.
  std::vector<LeftOut> samples;
  for (int group = 1; group <= 10; ++group) {
    for (int i = 0; i < 10; ++i)
      samples.push_back({.row = 0, .group = std::to_string(group), .miss = 0.01 * group, .variance = 1});
  }
  std::vector<LeftOut> few(samples.begin(), samples.begin() + 50);
  const Data data = DataOf({0, 1});
  const Recipe recipe = RecipeOf(data.spec, kPhysical, Split::kHardware, Groups::kCommon);
  const Estimator physical = Estimator::Fit(data, All(2), recipe, Seed(1));
  const auto half = [&](std::span<const LeftOut> of) {
    return Spread::Learn(physical, data, of, {.coverage = 0.9, .of_new_group = true})
        .spread.HalfWidth({}, {}, 1);
  };
  EXPECT_NEAR(half(samples), 0.09 * 1.2, 1e-9);
  EXPECT_NEAR(half(few), 0.05 * 1.4, 1e-9);
}

}  // namespace
}  // namespace weir::predict
