#include "predict/validation/splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace weir::predict {
namespace {

std::vector<Row> MakeRows() {
  std::vector<Row> rows;
  for (const char* gpu : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) {
    for (const double devices : {1, 2, 4}) {
      for (int i = 0; i < 5; ++i) {
        Row row;
        row.hardware = gpu;
        row.network = i < 3 ? "n" : "m";
        row.devices = devices;
        rows.push_back(row);
      }
    }
  }
  return rows;
}

TEST(MakeFolds, InsideLeavesEachRowOutOnce) {
  const auto rows = MakeRows();
  std::vector<int> left_out;
  for (const Fold& fold : MakeFolds(rows, Split::kInside, Seed(1))) {
    EXPECT_EQ(fold.train.size() + fold.test.size(), rows.size());
    left_out.insert(left_out.end(), fold.test.begin(), fold.test.end());
  }
  std::ranges::sort(left_out);
  ASSERT_EQ(left_out.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(left_out[i], static_cast<int>(i));
}

TEST(MakeFolds, HardwareOfATestIsNeverInItsTraining) {
  const auto rows = MakeRows();
  const auto folds = MakeFolds(rows, Split::kHardware, Seed(1));
  EXPECT_EQ(folds.size(), 5U);
  for (const Fold& fold : folds) {
    std::set<std::string> known;
    for (const int i : fold.train) known.insert(rows[static_cast<size_t>(i)].hardware);
    EXPECT_FALSE(fold.test.empty());
    for (const int i : fold.test) EXPECT_FALSE(known.contains(rows[static_cast<size_t>(i)].hardware));
  }
}

TEST(MakeFolds, NoFoldTrainsOnLessThanAThird) {
  auto rows = MakeRows();  // 135
  for (size_t i = 0; i < 120; ++i) rows[i].hardware = "most";
  const auto folds = MakeFolds(rows, Split::kHardware, Seed(1));
  ASSERT_EQ(folds.size(), 1U);
  EXPECT_EQ(folds[0].train.size(), 120U);
}

TEST(Reach, IsTheMedianDistanceFromTheSecondGreatestCount) {
  std::vector<Row> rows(7);
  for (size_t i = 0; const double devices : {4, 8, 8, 14, 16, 16, 32}) rows[i++].devices = devices;
  const std::vector<Fold> folds = {{.train = {0, 1, 2, 3}, .test = {4, 5, 6}}};
  EXPECT_NEAR(Reach(rows, folds), 1, 1e-12);  // from 8 to 16; one row with 14 is not enough
  EXPECT_NEAR(Reach(rows, {{.train = {0, 1, 2}, .test = {3, 4, 6}}}), 1, 1e-12);
  EXPECT_NEAR(Reach(rows, {{.train = {0, 1, 2}, .test = {3}}}), std::log2(14.0 / 8), 1e-12);
  EXPECT_NEAR(Reach(rows, {{.train = {1, 2, 3, 4, 5}, .test = {4}}}), 0.5, 1e-12);
}

TEST(MakeFolds, CountsOfATestAreAboveAllOfItsTraining) {
  const auto rows = MakeRows();
  const auto folds = MakeFolds(rows, Split::kCount, Seed(1));
  ASSERT_EQ(folds.size(), 1U);  // below 2 there is one count only
  for (const int i : folds[0].train) EXPECT_LT(rows[static_cast<size_t>(i)].devices, 4);
  for (const int i : folds[0].test) EXPECT_EQ(rows[static_cast<size_t>(i)].devices, 4);
}

TEST(MakeFolds, ALargerCountIsAskedOfKnownHardwareAndNetworksOnly) {
  auto rows = MakeRows();
  for (Row& row : rows) {
    if (row.devices != 4) continue;
    if (row.hardware == "a") row.hardware = "only on four";
    if (row.hardware == "b") row.network = "only on four";
  }
  const auto folds = MakeFolds(rows, Split::kCount, Seed(1));
  ASSERT_EQ(folds.size(), 1U);
  EXPECT_EQ(folds[0].train.size(), 90U);
  EXPECT_EQ(folds[0].test.size(), 35U);
  for (const int i : folds[0].test) {
    EXPECT_NE(rows[static_cast<size_t>(i)].hardware, "only on four");
    EXPECT_NE(rows[static_cast<size_t>(i)].network, "only on four");
  }
}

TEST(MakeFolds, CountsAreCrossValidatedAtTheLastAndAtMostHalfOfIt) {
  auto rows = MakeRows();
  for (size_t i = 0; i < rows.size(); ++i) rows[i].devices = std::vector<double>{1, 2, 4, 6, 8}[i % 5];
  const auto folds = MakeFolds(rows, Split::kCount, Seed(1));
  ASSERT_EQ(folds.size(), 2U);
  EXPECT_EQ(folds[0].train.size(), 108U);  // below 8
  EXPECT_EQ(folds[1].train.size(), 54U);   // below 4
}

TEST(MakeFolds, OneCountNeverTrainsAlone) {
  auto rows = MakeRows();
  for (Row& row : rows) row.devices = std::min(row.devices, 2.0);
  EXPECT_TRUE(MakeFolds(rows, Split::kCount, Seed(1)).empty());
}

TEST(MakeFolds, AreEmptyIfTheRowsCannotBeSplit) {
  auto rows = MakeRows();
  for (Row& row : rows) {
    row.hardware = "a";
    row.devices = 1;
  }
  EXPECT_TRUE(MakeFolds(rows, Split::kHardware, Seed(1)).empty());
  EXPECT_TRUE(MakeFolds(rows, Split::kCount, Seed(1)).empty());
  rows.resize(10);
  EXPECT_TRUE(MakeFolds(rows, Split::kInside, Seed(1)).empty());
}

TEST(Thin, KeepsTrainingAndFewerTestRows) {
  const auto rows = MakeRows();
  const auto folds = MakeFolds(rows, Split::kHardware, Seed(1)),
             thin = Thin(folds, Split::kHardware, 40, Seed(1));
  size_t total = 0;
  for (size_t f = 0; f < folds.size(); ++f) {
    EXPECT_EQ(thin[f].train, folds[f].train);
    EXPECT_TRUE(std::ranges::includes(folds[f].test, thin[f].test));
    total += thin[f].test.size();
  }
  EXPECT_LE(total, 40U);
  EXPECT_GT(total, 30U);
}

TEST(Thin, KeepsTwoPartsByChanceWhereThoseAreEnough) {
  const auto folds = MakeFolds(MakeRows(), Split::kInside, Seed(1));  // 4 of 33 or 34
  ASSERT_EQ(folds.size(), 4U);
  EXPECT_EQ(Thin(folds, Split::kInside, 200, Seed(1)).size(), 4U);
  EXPECT_EQ(Thin(folds, Split::kInside, 90, Seed(1)).size(), 3U);
  EXPECT_EQ(Thin(folds, Split::kInside, 20, Seed(1)).size(), 2U);
}

}  // namespace
}  // namespace weir::predict
