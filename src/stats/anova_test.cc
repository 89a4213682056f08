#include "stats/anova.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::stats {
namespace {

// Two factors in four blocks; two cells are missing and one observation is 1.2 too high.
struct Data {
  std::vector<double> y;
  std::vector<FactorLevels> factors{{}, {}, {}};  // block, a, b
};

Data MakeData() {
  Data data;
  for (int i = 0; i < 24; ++i) {
    if (i == 5 || i == 17) continue;
    const int a = i % 2, b = (i / 2) % 3, block = i / 6;
    data.y.push_back(5 + 0.3 * a - 0.2 * b + 0.15 * a * b + 0.05 * block + ((i * 7919) % 101 - 50) / 400.0 +
                     (i == 11 ? 1.2 : 0));
    data.factors[0].push_back(block);
    data.factors[1].push_back(a);
    data.factors[2].push_back(b);
  }
  return data;
}

// The expected numbers by statsmodels 0.15 over the same rows:
// m = smf.ols("y~C(block)+C(a)+C(b)+C(a):C(b)", d).fit(); anova_lm(m, typ=2); jarque_bera(m.resid);
// durbin_watson(m.resid); m.outlier_test()
TEST(AnalyseVariance, GivesTheNumbersOfStatsmodels) {
  const Data data = MakeData();
  const auto anova = AnalyseVariance(data.y, data.factors, std::vector<std::pair<size_t, size_t>>{{1, 2}});
  ASSERT_TRUE(anova.has_value());
  EXPECT_EQ(anova->residual_degrees, 13);
  EXPECT_NEAR(anova->residual_sum_of_squares, 0.7471969791666666, 1e-9);
  ASSERT_EQ(anova->terms.size(), 4u);
  const double sums[] = {0.07674052083333331, 1.6980742234002955, 0.07947544229497454, 0.5881836086309484};
  const double fs[] = {0.44505299969938567, 29.543702021953564, 0.6913710699064618, 5.116714283782429};
  const double ps[] = {0.7248789873942064, 0.00011402412753088462, 0.5183949677829479, 0.022955952467996334};
  const int64_t degrees[] = {3, 1, 2, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(anova->terms[i].degrees, degrees[i]) << i;
    EXPECT_NEAR(anova->terms[i].sum_of_squares, sums[i], 1e-9) << i;
    EXPECT_NEAR(anova->terms[i].f, fs[i], 1e-9) << i;
    EXPECT_NEAR(anova->terms[i].p, ps[i], 1e-9) << i;
  }
  EXPECT_NEAR(anova->residuals.front(), -0.08837500000000009, 1e-9);
  EXPECT_NEAR(anova->residuals.back(), -0.521041666666668, 1e-9);
  EXPECT_NEAR(*anova->normality_p, 0.01546532609353762, 1e-9);
  EXPECT_NEAR(*anova->durbin_watson, 1.9637739992424454, 1e-9);
}

TEST(AnalyseVariance, FlagsAnOutlierWithBonferronisP) {
  const Data data = MakeData();
  const auto anova = AnalyseVariance(data.y, data.factors, std::vector<std::pair<size_t, size_t>>{{1, 2}});
  // Observation 10 is the planted one. Only 21 shares its cell, so their residuals mirror each other.
  ASSERT_EQ(anova->outliers.size(), 2u);
  for (const AnovaOutlier& outlier : anova->outliers) {
    ASSERT_TRUE(outlier.observation == 10 || outlier.observation == 21) << outlier.observation;
    EXPECT_NEAR(outlier.t, outlier.observation == 10 ? 9.04194136185098 : -9.04194136185098, 1e-9);
    EXPECT_NEAR(outlier.p, 2.3125555678221247e-05, 1e-12);
  }
}

TEST(AnalyseVariance, LeavesOutATermThatAnotherOneAlreadyExplains) {
  const std::vector<double> y{1, 2, 1.1, 2.1, 0.9, 1.9};
  const FactorLevels a{0, 1, 0, 1, 0, 1};
  const auto anova = AnalyseVariance(y, std::vector<FactorLevels>{a, a}, {});
  ASSERT_TRUE(anova.has_value());
  EXPECT_TRUE(anova->terms.empty());
  EXPECT_EQ(anova->residual_degrees, 4);
}

// Three architectures, of which one alone has a network: its third level is "not applicable" in the other
// two.
TEST(FindAliases, NamesTheFactorThatTakesAwayDegreesOfFreedom) {
  const std::vector<FactorLevels> factors{{0, 1, 2, 2, 0, 1, 2, 2},   // in-process, microservice, distributed
                                          {0, 0, 1, 2, 0, 0, 1, 2},   // none, none, 1, 5 Gbit/s
                                          {0, 0, 0, 0, 1, 1, 1, 1}};  // batch
  const std::vector<AnovaAlias> aliases = FindAliases(factors, {});
  ASSERT_EQ(aliases.size(), 2u);
  EXPECT_EQ(aliases[0].factors, std::vector<size_t>{0});
  EXPECT_EQ(aliases[0].degrees, 1);
  EXPECT_EQ(aliases[0].own_degrees, 2);
  EXPECT_EQ(aliases[0].with, std::vector<size_t>{1});
  EXPECT_EQ(aliases[1].factors, std::vector<size_t>{1});
  EXPECT_EQ(aliases[1].degrees, 1);
  const std::vector<FactorLevels> crossed{{0, 0, 1, 1}, {0, 1, 0, 1}};
  EXPECT_TRUE(FindAliases(crossed, {}).empty());
}

TEST(AnalyseVariance, RefusesDataThatCannotBeJudged) {
  const std::vector<double> y{1, 2};
  EXPECT_FALSE(AnalyseVariance(y, std::vector<FactorLevels>{{0, 1}}, {}));   // no residual is left
  EXPECT_FALSE(AnalyseVariance(y, std::vector<FactorLevels>{{0}}, {}));      // lengths differ
  EXPECT_FALSE(AnalyseVariance(y, std::vector<FactorLevels>{{0, -1}}, {}));  // no level
  EXPECT_FALSE(AnalyseVariance(std::vector<double>{1, NAN, 3}, std::vector<FactorLevels>{{0, 0, 0}}, {}));
  EXPECT_FALSE(AnalyseVariance(std::vector<double>{1, 2, 3}, std::vector<FactorLevels>{{0, 0, 1}},
                               std::vector<std::pair<size_t, size_t>>{{0, 0}}));
}

}  // namespace
}  // namespace weir::stats
