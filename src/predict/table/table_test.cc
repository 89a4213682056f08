#include "predict/table/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "predict/table/spec.h"
#include "predict/table/trials.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Table, ACellIsItsTextAndItsNumberIfItIsOne) {
  const Table table(*ParseCsv("a,b,c,d\n1.50,nan,,x\n"));
  EXPECT_EQ(table.At(0, 0).number, 1.5);
  EXPECT_EQ(table.At(0, 0).text, "1.50");
  for (const int column : {1, 2, 3}) EXPECT_EQ(table.At(0, column).number, std::nullopt) << column;
  EXPECT_EQ(table.At(0, 1).text, "nan");
  EXPECT_EQ(table.At(0, 2).text, "");
}

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

TEST(SpecOfTrials, MakesTermsOfNumbersAndCategoriesOfOtherFactors) {
  const std::string journal =
      Journal(Line("a", 1, "VALID", R"({"batch": 8, "protocol": "http", "mode": "sync"})",
                   R"({"throughput_images_per_s": 5})") +
              Line("b", 1, "VALID", R"({"batch": 1, "protocol": "grpc", "mode": "sync"})",
                   R"({"throughput_images_per_s": 4})"));
  const auto text = SpecOfTrials(journal, "small");
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto spec = ParseSpec(*text);
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->name, "small");
  EXPECT_EQ(spec->target, "throughput_images_per_s");
  EXPECT_EQ(spec->terms.size(), 3U);  // the constant, batch, and its inverse
  EXPECT_THAT(spec->ranges, ElementsAre("batch"));
  EXPECT_THAT(spec->physics_by, ElementsAre("protocol"));  // mode has one level
  EXPECT_THAT(SpecOfTrials(Journal(Line("a", 1, "VALID", R"({"batch": 8})", "{}")), "x").error().message,
              HasSubstr("no trial of the study has throughput_images_per_s"));
}

TEST(WithIds, AddsLinesOnlyWhereTheColumnIsMissing) {
  EXPECT_THAT(WithIds(*ParseCsv("a\n1\n2\n"), "row_id").cells, ElementsAre("1", "line 2", "2", "line 3"));
  EXPECT_THAT(WithIds(*ParseCsv("a,row_id\n1,x\n"), "row_id").cells, ElementsAre("1", "x"));
}

TEST(ReadRows, GoesByTheEndOfTheName) {
  const TemporaryFolder folder = TemporaryFolder::Make("table_test").value();
  const std::string journal = folder.path() + "/journal.jsonl", csv = folder.path() + "/rows.csv";
  ASSERT_TRUE(WriteFileWhole(journal, Journal(Line("a", 1, "VALID", "{}", "{}") + "{}\n{}\n")));
  ASSERT_TRUE(WriteFileWhole(csv, "id,t\na,1\n"));
  EXPECT_THAT(ReadRows(csv)->columns, ElementsAre("id", "t"));
  EXPECT_THAT(ReadRows(journal).error().message, StartsWith(journal + ": line 3: not the line of a trial"));
  ASSERT_TRUE(WriteFileWhole(journal, Journal(Line("a", 1, "VALID", "{}", "{}"))));
  EXPECT_EQ(ReadRows(journal)->rows(), 1);
  EXPECT_THAT(ReadRows(folder.path() + "/no.jsonl").error().message, StartsWith(folder.path() + "/no.jsonl"));
}

}  // namespace
}  // namespace weir::predict
