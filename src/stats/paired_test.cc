#include "stats/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::stats {
namespace {

const std::vector<double> kValues{110.2, 108.9, 112.4, 109.7, 111.3};
const std::vector<double> kReferences{100.1, 99.2, 101.5, 98.8, 100.9};

// The expected numbers by Python's statistics; t by bisection of its finite sums (Abramowitz and
// Stegun, 26.7.3 and 26.7.4).
TEST(PairedRatio, GivesTheNumbersWorkedOutElsewhere) {
  const auto ratio = PairedRatio(kValues, kReferences);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_EQ(ratio->n, 5);
  EXPECT_NEAR(ratio->ratio, 1.1038842448679003, 1e-12);
  EXPECT_NEAR(*ratio->low, 1.0976776300477995, 1e-12);
  EXPECT_NEAR(*ratio->high, 1.1101259538417587, 1e-12);
  EXPECT_NEAR(*ratio->log_deviation, 0.004540994286622321, 1e-12);
}

TEST(PairedRatio, OfTheReferenceOverTheValueIsTheInverse) {
  const auto ratio = PairedRatio(kValues, kReferences), inverse = PairedRatio(kReferences, kValues);
  EXPECT_NEAR(inverse->ratio, 1 / ratio->ratio, 1e-12);
  EXPECT_NEAR(*inverse->low, 1 / *ratio->high, 1e-12);
}

TEST(PairedRatio, DoesNotFeelWhatABlockHasInCommon) {
  std::vector<double> values = kValues, references = kReferences;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= static_cast<double>(i + 1);
    references[i] *= static_cast<double>(i + 1);
  }
  EXPECT_NEAR(*PairedRatio(values, references)->low, *PairedRatio(kValues, kReferences)->low, 1e-12);
}

TEST(PairedRatio, HasNoIntervalOfASinglePair) {
  const auto ratio = PairedRatio(std::vector{3.0}, std::vector{2.0});
  EXPECT_DOUBLE_EQ(ratio->ratio, 1.5);
  EXPECT_EQ(ratio->low, std::nullopt);
  EXPECT_EQ(ratio->log_deviation, std::nullopt);
}

TEST(PairedRatio, SaysNothingOfWhatHasNoLogarithmOrNoPartner) {
  EXPECT_FALSE(PairedRatio(std::vector{1.0, 0.0}, std::vector{1.0, 1.0}));
  EXPECT_FALSE(PairedRatio(std::vector{1.0}, std::vector{-1.0}));
  EXPECT_FALSE(PairedRatio(std::vector{1.0, 2.0}, std::vector{1.0}));
  EXPECT_FALSE(PairedRatio(std::vector{1.0}, std::vector<double>{INFINITY}));
  EXPECT_FALSE(PairedRatio({}, {}));
}

// Equal variances and sizes make Welch's degrees those of the pooled test, 2 (n - 1) = 8: t 2.306004135204166
// by the same bisection, and the rest by hand in Python.
TEST(UnpairedRatio, GivesTheNumbersWorkedOutElsewhere) {
  std::vector<double> doubled = kReferences;
  for (double& value : doubled) value *= 2;
  const auto ratio = UnpairedRatio(doubled, kReferences);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_EQ(ratio->n, 5);
  EXPECT_NEAR(ratio->ratio, 2, 1e-12);
  EXPECT_NEAR(*ratio->low, 1.9673743805829764, 1e-9);
  EXPECT_NEAR(*ratio->high, 2.033166660844039, 1e-9);
}

TEST(RatioP, IsOneLessTheConfidenceAtWhichTheIntervalTouchesOne) {
  for (auto ratio : {PairedRatio(kValues, kReferences), UnpairedRatio(kValues, kReferences)}) {
    const double p = RatioP(*ratio);
    SetConfidence(1 - p, *ratio);
    EXPECT_NEAR(ratio->ratio > 1 ? *ratio->low : *ratio->high, 1, 1e-9);
    SetConfidence(0.95, *ratio);
    EXPECT_LT(*ratio->low, ratio->ratio);
  }
  EXPECT_EQ(RatioP({.n = 1, .ratio = 2}), 1);
}

TEST(UnpairedRatio, TakesSamplesOfDifferentSizesAndSaysNothingOfNone) {
  EXPECT_TRUE(UnpairedRatio(std::vector{1.0, 1.1, 1.2}, std::vector{1.0, 1.2})->low.has_value());
  EXPECT_EQ(UnpairedRatio(std::vector{2.0}, std::vector{1.0, 1.2})->low, std::nullopt);
  EXPECT_FALSE(UnpairedRatio({}, std::vector{1.0}));
  EXPECT_FALSE(UnpairedRatio(std::vector{-1.0}, std::vector{1.0}));
}

// (t[.975] + t[.8]) s / sqrt(n), t as above.
TEST(SmallestDifference, GivesTheNumbersWorkedOutElsewhere) {
  EXPECT_NEAR(*SmallestDifference(0.004540994286622321, 5), 0.00754929469891942, 1e-12);
  EXPECT_NEAR(*SmallestDifference(0.01, 20), 0.006605288019866378, 1e-12);
}

TEST(SmallestDifference, WantsTwoDifferencesAndAFiniteDeviation) {
  EXPECT_FALSE(SmallestDifference(0.01, 1));
  EXPECT_FALSE(SmallestDifference(NAN, 20));
  EXPECT_EQ(*SmallestDifference(0, 20), 0);
}

}  // namespace
}  // namespace weir::stats
