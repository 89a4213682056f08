// The models by themselves, on rows whose law is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/seed.h"
#include "predict/estimators/neighbours.h"
#include "predict/estimators/physical.h"
#include "predict/estimators/trees.h"
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

TEST(Trees, SayWhatTheLibrarySaysAndAreKeptWhole) {
  Random random(2);
  std::vector<float> x, y;
  for (int i = 0; i < 400; ++i) {
    const double a = random.Uniform(), b = random.Uniform();
    x.push_back(static_cast<float>(a));
    x.push_back(i % 7 == 0 ? NAN : static_cast<float>(b));
    y.push_back(static_cast<float>(a > 0.5 ? 3 + b : 1));
  }
  const auto trees = Trees::Fit(x, 2, y, {.rounds = 60, .rate = 0.2, .depth = 4});
  ASSERT_TRUE(trees.has_value());
  EXPECT_NEAR(trees->Predict(std::vector<float>{0.2F, 0.5F}), 1, 0.05);
  EXPECT_NEAR(trees->Predict(std::vector<float>{0.8F, 0.5F}), 3.5, 0.15);
  const auto again = FieldsFromJson<Trees>(FieldsToJson(*trees));
  ASSERT_TRUE(again.has_value());
  for (size_t i = 0; i < 400; ++i) {
    EXPECT_EQ(again->Predict(std::span(x).subspan(2 * i, 2)), trees->Predict(std::span(x).subspan(2 * i, 2)));
  }
}

TEST(Trees, TheSameSeedGivesTheSameTrees) {
  Random random(3);
  std::vector<float> x(900), y(300);
  for (float& value : x) value = static_cast<float>(random.Normal());
  for (float& value : y) value = static_cast<float>(random.Normal());
  const auto text = [&](uint64_t seed) {
    return DumpJson(FieldsToJson(*Trees::Fit(x, 3, y, {.rounds = 20, .seed = seed})));
  };
  EXPECT_EQ(text(5), text(5));
  EXPECT_NE(text(5), text(6));
}

TEST(Trees, TellTheFirstLineOfWhatTheLibraryRefuses) {
  const auto trees = Trees::Fit(std::vector<float>{1, 2, 3, 4}, 1, std::vector<float>{1, 2, INFINITY, 4}, {});
  ASSERT_FALSE(trees.has_value());
  EXPECT_TRUE(trees.error().message.starts_with("XGBoost: ")) << trees.error().message;
  EXPECT_EQ(trees.error().message.find('\n'), std::string::npos) << trees.error().message;
}

TEST(Trees, RefuseWhatIsNotWhole) {
  const auto trees =
      Trees::Fit(std::vector<float>{1, 2, 3, 4}, 1, std::vector<float>{1, 2, 3, 4}, {.rounds = 3});
  ASSERT_TRUE(trees.has_value());
  Json json = FieldsToJson(*trees);
  json["roots"] = {1'000'000};
  EXPECT_FALSE(FieldsFromJson<Trees>(json).has_value());
  EXPECT_FALSE(Trees::Fit(std::vector<float>{1, 2, 3}, 2, std::vector<float>{1, 2}, {}).has_value());
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
  EXPECT_NEAR(neighbours.At(std::vector<float>{0.25F}, {}), a * std::exp(-0.25) + b * std::exp(-0.75), 1e-9);
}

TEST(Neighbours, FarFromAllSayNothing) {
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.01};
  const Neighbours neighbours(Line({0, 1, 2}), {5, 5, 5}, kernel, 3);
  EXPECT_NEAR(neighbours.At(std::vector<float>{60}, {}), 0, 1e-9);
  EXPECT_NEAR(neighbours.At(std::vector<float>{1}, {}), 5, 0.2);
}

TEST(Neighbours, LeavesOutWhatMayNotBeUsed) {
  const Kernel kernel{.number_weights = {1}, .all = 1, .network = 0, .hardware = 0, .run = 0, .noise = 0.01};
  const Neighbours neighbours(Line({0, 0}), {1, 3}, kernel, 2);
  const std::vector<char> without_second = {0, 1};
  EXPECT_NEAR(neighbours.At(std::vector<float>{0}, {}, without_second), 1, 0.02);
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
  EXPECT_NEAR(neighbours.At({}, std::vector<int>{0, -1}), expected, 0.01);
  EXPECT_NEAR(neighbours.At({}, std::vector<int>{1, -1}), -expected, 0.01);
}

TEST(Spread, HoldsTheShareAskedForOnRowsItNeverSaw) {
  // Misses of which a half is ten times as large as the other; x tells which.
  const auto make = [](Random& random, int n, std::vector<float>& x, std::vector<double>& misses) {
    for (int i = 0; i < n; ++i) {
      x.push_back(static_cast<float>(i % 2));
      misses.push_back(random.Normal() * (i % 2 == 0 ? 0.01 : 0.1));
    }
  };
  Random random(7);
  std::vector<float> x, new_x;
  std::vector<double> misses, new_misses;
  make(random, 2000, x, misses);
  make(random, 2000, new_x, new_misses);
  const auto learned = Spread::Learn(x, 1, misses, std::vector<double>(2000, 1.0), All(2000), 0.9, Seed(1));
  ASSERT_TRUE(learned.has_value());
  const Spread* spread = &learned->spread;
  // Those of the samples are by trees that did not see them: like those of rows to come.
  EXPECT_NEAR(learned->half_widths[1], spread->HalfWidth(std::vector<float>{1}), 0.03);
  int held = 0;
  for (size_t i = 0; i < new_misses.size(); ++i) {
    held += std::abs(new_misses[i]) <= spread->HalfWidth(std::span(new_x).subspan(i, 1)) ? 1 : 0;
  }
  EXPECT_NEAR(held / 2000.0, 0.9, 0.03);
  // 1.645 standard deviations hold 90 % of a normal distribution.
  EXPECT_NEAR(spread->HalfWidth(std::vector<float>{1}), 0.1645, 0.05);
  EXPECT_LT(spread->HalfWidth(std::vector<float>{0}), 0.05);
  const auto again = FieldsFromJson<Spread>(FieldsToJson(*spread));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->Takes(1));
  EXPECT_FALSE(again->Takes(2));
}

TEST(Spread, OfFewSamplesIsTheConformalQuantile) {
  // ceil(10 * 0.8) = 8th of 9 sizes.
  const std::vector<double> misses = {0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9};
  const auto learned = Spread::Learn({}, 0, misses, std::vector<double>(9, 1.0), All(9), 0.8, Seed(1));
  EXPECT_DOUBLE_EQ(learned->spread.HalfWidth({}), 0.8);
  EXPECT_EQ(learned->half_widths, std::vector<double>(9, 0.8));
}

TEST(Spread, IsNoWiderThanWhatNearlyAllWereMissedBy) {
  // Two marks, each of which makes a miss ten times as large; no row had both.
  std::vector<float> x;
  std::vector<double> misses;
  Random random(3);
  for (int i = 0; i < 900; ++i) {
    x.push_back(i % 3 == 1 ? 1.0F : 0.0F);
    x.push_back(i % 3 == 2 ? 1.0F : 0.0F);
    misses.push_back(random.Normal() * (i % 3 == 0 ? 0.01 : 0.1));
  }
  const auto learned = Spread::Learn(x, 2, misses, std::vector<double>(900, 1.0), All(900), 0.9, Seed(1));
  ASSERT_TRUE(learned.has_value());
  const double one = learned->spread.HalfWidth(std::vector<float>{1, 0});
  EXPECT_NEAR(one, 0.1645, 0.05);
  const double both = learned->spread.HalfWidth(std::vector<float>{1, 1});
  EXPECT_GE(both, one);
  EXPECT_LT(both, 0.4);
}

TEST(LossOf, IsTheMeanAndTheMedianByImportance) {
  // Three times too long, twice too short.
  const std::vector<double> predicted = {std::log(3.0), std::log(0.5)}, measured = {0, 0};
  EXPECT_NEAR(LossOf(predicted, measured, std::vector<double>{1, 3}),
              (std::log(3.0) + 3 * std::log(2.0)) / 4 + std::log(2.0), 1e-12);
  EXPECT_NEAR(LossOf(predicted, measured, std::vector<double>{3, 1}),
              (3 * std::log(3.0) + std::log(2.0)) / 4 + std::log(3.0), 1e-12);
}

TEST(ForAnotherGroup, GoesByStudentAsFarAsMissesAreCommonToAGroup) {
  std::vector<double> misses;
  std::vector<std::string> groups;
  for (const char* group : {"a", "b", "c", "d", "e"}) {
    for (const double sign : {-1, 1}) {
      misses.push_back(0.1 * sign);
      groups.emplace_back(group);
    }
  }
  EXPECT_NEAR(ForAnotherGroup(misses, groups), 1, 1e-9);
  // Student's t of 4 degrees is 2.132: 2.132 sqrt(1.2) / 1.645 = 1.42.
  for (size_t i = 0; i < misses.size(); ++i) misses[i] = i < 6 ? 0.2 : -0.2;
  EXPECT_NEAR(ForAnotherGroup(misses, groups), 1.42, 0.01);
  // Two groups would give 4.7.
  EXPECT_EQ(ForAnotherGroup(std::vector<double>{0.1, -0.3}, std::vector<std::string>{"a", "b"}), 2);
  EXPECT_EQ(ForAnotherGroup(std::vector<double>{0.1, -0.3}, std::vector<std::string>{"a", "a"}), 1);
}

}  // namespace
}  // namespace weir::predict
