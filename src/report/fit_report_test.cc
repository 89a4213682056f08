#include "report/fit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"

namespace weir::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// As `weir fit` gives it, with names that want escaping.
Json SmallFit() {
  const Json score = {{"mean_percent", 6.1},
                      {"median_percent", 3.07},
                      {"p90_percent", 14.0},
                      {"log_mean_percent", 5.2},
                      {"rows", 120}};
  Json candidate = score, linear = score, group = score, split = score, point = score;
  candidate["candidate"] = "trees";
  candidate["weight"] = 1.0;
  linear["candidate"] = "physical";
  linear["weight"] = 0.0;
  linear["log_mean_percent"] = 16.6;
  group["group"] = "<A100>";
  split["split"] = "hardware";
  split["interval_coverage_percent"] = 91.2;
  split["interval_half_width_percent"] = 12.0;
  split["interval_score_of_constant"] = 0.8;
  split["candidates"] = Json::array({candidate, linear});
  split["by_hardware"] = Json::array({group, group});
  const Json part = {
      {"measured_ms", 2.0}, {"predicted_over_measured", 1.02}, {"low", 0.9}, {"high", 1.1}, {"rows", 60}};
  const Json worst = {{"row", "r7"},    {"hardware", "<A100>"}, {"network", "vgg"},
                      {"devices", 2.0}, {"measured_ms", 4.0},   {"predicted_ms", 8.0}};
  const Json finding = {{"fault", "unit"}, {"what", "a thousand times"}, {"rows", Json::array({"r1", "r2"})}};
  split["profile"] = Json::array({part, part});
  split["worst"] = Json::array({worst});
  point["fitted"] = 400;
  point["answered_percent"] = 99.0;
  point["interval_coverage_percent"] = 88.0;
  Json fit = {{"name", "made"}, {"target", "items_per_s"}, {"rows", 216},  {"skipped", 1},
              {"unusable", 2},  {"left_out", 3},           {"fitted", 210}};
  fit["splits"] = Json::array({split});
  fit["learning_curve"] = Json::array({point});
  fit["findings"] = Json::array({finding});
  fit["models"] = "physical: time_ms = 1 * a";
  fit["estimator"] = "auto";
  fit["seed"] = 1;
  fit["command"] = "weir fit made.yaml";
  return fit;
}

Document Drawn(const Json& fit) { return FitDocument(results::FitResult::FromJson(fit).value()); }

TEST(FitDocument, TellsHowFarOffBySplitGroupAndCandidate) {
  const std::string html = ToHtml(Drawn(SmallFit()));
  EXPECT_THAT(
      html,
      HasSubstr("<p class=\"answer\">Reliable, hardware that was never measured: 3.1 % off in the median"));
  EXPECT_THAT(html, HasSubstr("Predicted against measured"));
  EXPECT_THAT(html, HasSubstr("What more rows would bring"));
  EXPECT_THAT(html, HasSubstr("Error by hardware"));
  EXPECT_THAT(html, HasSubstr("&lt;A100&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<A100>")));
  EXPECT_THAT(html, HasSubstr("physical"));
  EXPECT_THAT(html, HasSubstr("16.6"));
  EXPECT_THAT(html, HasSubstr("r1 and 1 more"));
  EXPECT_THAT(html, HasSubstr("weir fit made.yaml"));
  EXPECT_THAT(html, Not(HasSubstr("http://www.w3.org/1999")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(FitDocument, ColoursTheVerdictOfASplit) {
  const auto html_of = [](double held, double p90) {
    Json fit = SmallFit();
    fit["splits"][0]["interval_coverage_percent"] = held;
    fit["splits"][0]["p90_percent"] = p90;
    return ToHtml(Drawn(fit));
  };
  EXPECT_THAT(html_of(90, 40), HasSubstr("<p class=\"answer\">Reliable"));
  EXPECT_THAT(html_of(82, 40), HasSubstr("<p class=\"warning\" role=\"note\">Use with care"));
  EXPECT_THAT(html_of(90, 120), HasSubstr("<p class=\"warning\" role=\"note\">Use with care"));
  EXPECT_THAT(html_of(70, 40), HasSubstr("<p class=\"failure\" role=\"note\">Not reliable"));
}

TEST(FitDocument, OfAFitWithoutCrossValidationSaysSo) {
  Json fit = SmallFit();
  fit["splits"] = Json::array();
  fit.erase("learning_curve");
  const Document document = Drawn(fit);
  const auto& first = std::get<Paragraph>(document.sections.front().blocks.front());
  EXPECT_EQ(first.tone, Paragraph::Tone::kFailure);
  EXPECT_THAT(ToHtml(document), Not(HasSubstr("<svg")));
}

TEST(FitDocument, HundredsOfGroupsAreATable) {
  Json fit = SmallFit();
  const Json group = fit["splits"][0]["by_hardware"][0];
  for (int i = 0; i < 40; ++i) fit["splits"][0]["by_hardware"].push_back(group);
  const Document document = Drawn(fit);
  ASSERT_EQ(document.sections[2].title, "Error by group");
  for (const Block& block : document.sections[2].blocks) EXPECT_TRUE(std::holds_alternative<Table>(block));
}

}  // namespace
}  // namespace weir::report
