#include "record/trials.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kHeader = R"({"entry": "study", "study": {"study": "small"}, "provenance": {}})";

// A line of a journal.
std::string Line(std::string_view id, int attempt, std::string_view verdict, std::string_view factors,
                 std::string_view metrics) {
  return fmt::format(
      R"({{"entry": "trial", "id": "{}", "attempt": {}, "configuration": 1, "block": 0, "position": 2, )"
      R"("role": "trial", "seed": 18446744073709551615, "took_s": 0.25, "record": {{"factors": {}, )"
      R"("metrics": {}, "verdict": {{"verdict": "{}", "reasons": [], "message": ""}}, )"
      R"("provenance": "p.json", "command": "weir run m d"}}}})"
      "\n",
      id, attempt, factors, metrics, verdict);
}

std::string Journal(std::string_view lines) { return fmt::format("{}\n{}", kHeader, lines); }

// The cells of the rows that have this id.
std::vector<std::string> RowOf(const Csv& csv, std::string_view id) {
  for (int64_t row = 0; row < csv.rows(); ++row) {
    if (csv.row(row)[0] == id) return {csv.row(row).begin(), csv.row(row).end()};
  }
  return {};
}

std::string Refusal(std::string_view journal) {
  const auto csv = ParseTrials(journal);
  return csv ? "read" : csv.error().message;
}

TEST(ParseTrials, IsARowForTheLastTryOfEachTrial) {
  const auto csv = ParseTrials(
      Journal(Line("a", 1, "failed", R"({"batch": 8})", "{}") +
              Line("b", 1, "VALID", R"({"batch": 1})", R"({"rate": 1e22, "stages_ms": {"infer": 3}})") +
              Line("a", 2, "SUSPECT", R"({"batch": 8})", R"({"rate": 4.5, "bottleneck": "decode"})")));
  ASSERT_TRUE(csv.has_value()) << csv.error().message;
  EXPECT_THAT(csv->columns,
              ElementsAre("id", "attempt", "configuration", "block", "position", "role", "seed", "took_s",
                          "verdict", "batch", "rate", "bottleneck", "stages_ms.infer", "command"));
  EXPECT_THAT(csv->lines, ElementsAre(4, 3));
  EXPECT_THAT(RowOf(*csv, "a"), ElementsAre("a", "2", "1", "0", "2", "trial", "18446744073709551615", "0.25",
                                            "SUSPECT", "8", "4.5", "decode", "", "weir run m d"));
  EXPECT_THAT(RowOf(*csv, "b"), ElementsAre("b", "1", "1", "0", "2", "trial", "18446744073709551615", "0.25",
                                            "VALID", "1", "1e+22", "", "3", "weir run m d"));
}

TEST(ParseTrials, AMetricThatIsNamedAsAnEarlierColumnIsCalledMeasured) {
  const auto csv = ParseTrials(
      Journal(Line("a", 1, "VALID", "{}", R"({"images": 40, "command": "x", "seed": 3})") +
              Line("b", 1, "VALID", R"({"images": 200, "network": {"rate_gbit_per_s": 5}})", "{}")));
  ASSERT_TRUE(csv.has_value()) << csv.error().message;
  const std::vector<std::string> behind(csv->columns.begin() + 9, csv->columns.end());
  EXPECT_THAT(behind, ElementsAre("images", "network", "measured_images", "measured_command", "measured_seed",
                                  "command"));
  const std::vector<std::string> a = RowOf(*csv, "a"), b = RowOf(*csv, "b");
  EXPECT_THAT(std::vector(a.begin() + 9, a.end()), ElementsAre("", "", "40", "x", "3", "weir run m d"));
  EXPECT_THAT(std::vector(b.begin() + 9, b.end()),
              ElementsAre("200", R"({"rate_gbit_per_s":5})", "", "", "", "weir run m d"));
}

TEST(ParseTrials, ListsTruthsAndNullsAreNoCells) {
  const auto csv = ParseTrials(Journal(
      Line("a", 1, "VALID", "{}", R"({"list": [1], "true": true, "null": null, "deep": {"er": {"x": 1}}})")));
  ASSERT_TRUE(csv.has_value()) << csv.error().message;
  EXPECT_THAT(std::vector(csv->columns.begin() + 9, csv->columns.end()), ElementsAre("deep.er.x", "command"));
}

TEST(ParseTrials, ALastLineThatIsNotWholeIsLeftOut) {
  const std::string whole = Journal(Line("a", 1, "VALID", "{}", "{}"));
  const std::string next = Line("b", 1, "VALID", "{}", "{}");
  for (const size_t length : {size_t{1}, next.size() / 2, next.size() - 1}) {
    const auto csv = ParseTrials(whole + next.substr(0, length));
    ASSERT_TRUE(csv.has_value()) << csv.error().message;
    EXPECT_EQ(csv->rows(), 1) << length;
  }
}

TEST(ParseTrials, NamesTheLineOfWhatIsWrong) {
  const std::string good = Line("a", 1, "VALID", "{}", "{}");
  EXPECT_THAT(Refusal("id,t\n"), HasSubstr("line 1: not JSON"));
  EXPECT_THAT(Refusal(Journal("{]\n" + good)), StartsWith("line 2: "));
  EXPECT_THAT(Refusal(Journal(good + "{\"a\": 1}\n")), StartsWith("line 3: not the line of a trial"));
  EXPECT_THAT(Refusal(Journal(good + R"({"entry": "trial", "id": [], "attempt": 1})" + "\n")),
              HasSubstr("line 3: key \"id\" is missing"));
  EXPECT_THAT(Refusal(Journal(good + Line("b", 1, "well", "{}", "{}"))),
              StartsWith("line 3: record: verdict"));
  EXPECT_THAT(Refusal(Journal(good + Line("b", 1, "VALID", "{}", "[]"))),
              HasSubstr("line 3: record: key \"metrics\""));
  EXPECT_EQ(Refusal(Journal("")), "no trial was played yet");
  EXPECT_EQ(Refusal(""), "no trial was played yet");
}

TEST(ParseTrials, StopsAtTheLimitsOfATable) {
  std::string metrics = "{\"m\": 0";
  for (int i = 0; i < 10'000; ++i) metrics += fmt::format(", \"m{}\": {}", i, i);
  EXPECT_THAT(Refusal(Journal(Line("a", 1, "VALID", "{}", metrics + "}"))),
              HasSubstr("1 trials with 10011 columns: more than 10000 columns"));
}

}  // namespace
}  // namespace weir::record
