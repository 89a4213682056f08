#include "predict/validation/evaluation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weir::predict {
namespace {

Case Of(const std::string& hardware, double measured, double predicted) {
  return {.row = fmt::format("{}-{}", hardware, measured),
          .hardware = hardware,
          .network = {},
          .measured_ms = measured,
          .predicted_ms = predicted};
}

TEST(ScoreByGroup, PutsTheWorstGroupFirst) {
  const std::vector<Case> cases = {Of("good", 10, 10.1), Of("bad", 10, 15), Of("good", 20, 19.8),
                                   Of("bad", 10, 9)};
  const auto groups = ScoreByGroup(cases, [](const Case& one) { return one.hardware; });
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "bad");
  EXPECT_NEAR(groups[0].score.mean_percent, 30, 1e-9);
  EXPECT_EQ(groups[0].score.rows, 2);
  EXPECT_NEAR(groups[1].score.mean_percent, 1, 1e-9);
}

TEST(ErrorProfile, TellsWhereOnTheScaleOfTimesTheErrorLies) {
  std::vector<Case> cases;
  for (int i = 100; i > 0; --i) cases.push_back(Of("a", i, i <= 50 ? 2.0 * i : i));
  const auto profile = ErrorProfile(cases, 4);
  ASSERT_EQ(profile.size(), 4U);
  EXPECT_EQ(profile[0].measured_ms, 13);  // the median of 1 to 25
  EXPECT_EQ(profile[0].predicted_over_measured, 2);
  EXPECT_EQ(profile[3].predicted_over_measured, 1);
  EXPECT_EQ(profile[3].low, 1);
  EXPECT_EQ(profile[3].rows, 25);
  EXPECT_EQ(ErrorProfile(std::span(cases).first(25), 4).size(), 2U);  // at least ten in each
  EXPECT_TRUE(ErrorProfile({}, 4).empty());
}

TEST(WorstCases, AreFurthestApartAsARatio) {
  const std::vector<Case> cases = {Of("a", 10, 12), Of("b", 10, 5), Of("c", 10, 18)};
  const auto worst = WorstCases(cases, 2);
  ASSERT_EQ(worst.size(), 2U);
  EXPECT_EQ(worst[0].hardware, "b");
  EXPECT_EQ(worst[1].hardware, "c");
  EXPECT_EQ(WorstCases(cases, 9).size(), 3U);
}

}  // namespace
}  // namespace weir::predict
