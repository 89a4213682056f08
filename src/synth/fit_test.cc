#include "synth/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/seed.h"

namespace weir::synth {
namespace {

using stats::Matrix;

constexpr int kClasses = 3;
constexpr int kFeatures = 5;

struct Rows {
  Matrix features;
  std::vector<int> labels;
};

// Classes around means of their own on three features; the fourth is noise a thousand times as large, the
// fifth constant.
Rows MakeRows(int64_t count, double spread, uint64_t seed) {
  Rows rows{Matrix::Zero(count, kFeatures), {}};
  Random random(seed);
  for (int64_t r = 0; r < count; ++r) {
    const int label = static_cast<int>(r % kClasses);
    rows.labels.push_back(label);
    for (int c = 0; c < 3; ++c) rows.features.at(r, c) = 10 + (c == label) + spread * random.Normal();
    rows.features.at(r, 3) = 1000 * random.Normal();
    rows.features.at(r, 4) = 4;
  }
  return rows;
}

std::vector<double> Scores(const Head& head, const Matrix& features, int64_t row) {
  std::vector<double> scores(head.bias.begin(), head.bias.end());
  for (size_t k = 0; k < scores.size(); ++k) {
    for (int c = 0; c < kFeatures; ++c) scores[k] += head.weights[k * kFeatures + c] * features.at(row, c);
  }
  return scores;
}

struct Verdicts {
  double accuracy = 0;
  double confidence = 0;  // mean of the greatest probability of the softmax
};

Verdicts Judge(const Head& head, const Rows& rows) {
  Verdicts verdicts;
  for (int64_t r = 0; r < rows.features.rows; ++r) {
    const std::vector<double> scores = Scores(head, rows.features, r);
    const auto best = std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - *best);
    verdicts.accuracy += best - scores.begin() == rows.labels[r];
    verdicts.confidence += 1 / sum;
  }
  verdicts.accuracy /= static_cast<double>(rows.features.rows);
  verdicts.confidence /= static_cast<double>(rows.features.rows);
  return verdicts;
}

TEST(FitHead, PlacesFreshRowsOfClassesThatLieApart) {
  const Rows seen = MakeRows(60, 0.15, 1);
  const auto head = FitHead(seen.features, seen.labels, {.classes = kClasses, .outputs = 1000});
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->bias.size(), 1000U);
  EXPECT_GT(head->left_out_accuracy, 0.95);
  EXPECT_GT(Judge(*head, MakeRows(300, 0.15, 2)).accuracy, 0.97);
}

TEST(FitHead, IsAsSureAsItIsRight) {
  const Rows seen = MakeRows(300, 0.6, 1), fresh = MakeRows(900, 0.6, 2);  // classes that overlap
  const auto head = FitHead(seen.features, seen.labels, {.classes = kClasses, .outputs = 1000});
  ASSERT_TRUE(head.has_value());
  const Verdicts verdicts = Judge(*head, fresh);
  EXPECT_LT(verdicts.accuracy, 0.9);
  EXPECT_NEAR(verdicts.confidence, verdicts.accuracy, 0.06);
  EXPECT_NEAR(head->left_out_accuracy, verdicts.accuracy, 0.06);
}

TEST(FitHead, LeavesUnusedOutputsNoWeightAndALowBias) {
  const Rows seen = MakeRows(60, 0.3, 1);
  const auto head = FitHead(seen.features, seen.labels, {.classes = kClasses, .outputs = 10});
  ASSERT_TRUE(head.has_value());
  for (int64_t r = 0; r < seen.features.rows; ++r) {
    const std::vector<double> scores = Scores(*head, seen.features, r);
    EXPECT_LT(*std::max_element(scores.begin() + kClasses, scores.end()),
              *std::min_element(scores.begin(), scores.begin() + kClasses));
  }
  EXPECT_TRUE(std::all_of(head->weights.begin() + kClasses * kFeatures, head->weights.end(),
                          [](float weight) { return weight == 0; }));
}

TEST(FitHead, RefusesALabelThatIsNoClass) {
  const auto head = FitHead(Matrix::Zero(2, 1), std::vector<int>{0, 2}, {.classes = 2, .outputs = 2});
  ASSERT_FALSE(head.has_value());
  EXPECT_EQ(head.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::synth
