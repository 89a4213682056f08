#include "base/csv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(std::string_view text, const CsvLimits& limits = {}) {
  const auto csv = ParseCsv(text, limits);
  if (csv) return "read";
  EXPECT_EQ(csv.error().code, ErrorCode::kInvalidArgument);
  return csv.error().message;
}

TEST(ParseCsv, ReadsPlainAndQuotedFields) {
  const auto csv = ParseCsv("a,b\n1,\"x, \"\"y\"\"\nz\"\n,\n");
  ASSERT_TRUE(csv.has_value());
  EXPECT_THAT(csv->columns, ElementsAre("a", "b"));
  EXPECT_THAT(csv->cells, ElementsAre("1", "x, \"y\"\nz", "", ""));
  EXPECT_THAT(csv->lines, ElementsAre(2, 4));
}

TEST(ParseCsv, ByteOrderMarkCrlfAndMissingLastNewlineAreFine) {
  const auto csv = ParseCsv("\xEF\xBB\xBFgpu,ms\r\nT4,2\r\nA2,3");
  ASSERT_TRUE(csv.has_value());
  EXPECT_THAT(csv->columns, ElementsAre("gpu", "ms"));
  EXPECT_THAT(csv->cells, ElementsAre("T4", "2", "A2", "3"));
}

TEST(ParseCsv, NamesLineAndColumnOfWhatIsWrong) {
  EXPECT_THAT(Refusal("a,b\n1\n"), HasSubstr("line 2, column 1: 1 fields where the header has 2"));
  EXPECT_THAT(Refusal("a,b\n1,2,3\n"), HasSubstr("line 2, column 5"));
  EXPECT_THAT(Refusal("a,b\n1,\"2\n3,4\n"), HasSubstr("line 2, column 3: the quote"));
  EXPECT_THAT(Refusal("a,b\n1,2\"\n"), HasSubstr("line 2, column 4: a quote inside"));
  EXPECT_THAT(Refusal("a,b\n\"1\"x,2\n"), HasSubstr("line 2, column 4: text after"));
  EXPECT_THAT(Refusal("ab,c,ab\n"),
              HasSubstr("line 1, column 6: field 3 of the header \"ab\" is there twice"));
  EXPECT_THAT(Refusal("\xEF\xBB\xBF\"a\nb\",c,\"c\"\n"), HasSubstr("line 2, column 6: field 3"));
  EXPECT_THAT(Refusal("a,\n"), HasSubstr("line 1, column 3: field 2 of the header has no name"));
  EXPECT_THAT(Refusal(""), HasSubstr("line 1, column 1: the table is empty"));
  EXPECT_THAT(Refusal(std::string_view("a,b\n1,\0\n", 8)), HasSubstr("line 2, column 3: a control"));
  EXPECT_THAT(Refusal("a\n\xC3\x28\n"), HasSubstr("line 2, column 1: a byte (0xc3)"));
  EXPECT_THAT(Refusal("a\n1\n\n2\n"), HasSubstr("read"));  // a lone empty field
  EXPECT_THAT(Refusal("a,b\n1,2\n\n3,4\n"), HasSubstr("line 3, column 1: 1 fields"));
}

TEST(ParseCsv, StopsAtTheLimits) {
  std::string wide(1'000'000, ',');
  EXPECT_THAT(Refusal(wide), HasSubstr("more fields than the 10000 that a table may have"));
  EXPECT_THAT(Refusal("a\n1\n2\n", {.max_rows = 1}), HasSubstr("more than 1 rows"));
  EXPECT_THAT(Refusal("a,b\n1,2\n3,4\n5,6\n", {.max_cells = 5}),
              HasSubstr("line 4, column 1: more than 5 cells: leave out columns"));
  EXPECT_EQ(Refusal("a,b\n1,2\n3,4\n", {.max_cells = 4}), "read");
  EXPECT_THAT(Refusal("a\n123456\n", {.max_cell_bytes = 5}), HasSubstr("more than 5 bytes"));
  EXPECT_THAT(Refusal("a\n\"123456\"\n", {.max_cell_bytes = 5}), HasSubstr("more than 5 bytes"));
}

TEST(CsvLine, IsReadAgainAsTheSameCells) {
  const std::vector<std::string> cells = {"plain", "with, comma", "a \"quote\"", "two\nlines", ""};
  const auto csv = ParseCsv("a,b,c,d,e\n" + CsvLine(cells));
  ASSERT_TRUE(csv.has_value());
  EXPECT_EQ(csv->cells, cells);
  const std::vector<std::string> lone = {""};
  EXPECT_THAT(ParseCsv("a\n" + CsvLine(lone))->cells, ElementsAre(""));
  const std::vector<std::string> marked = {"\xEF\xBB\xBFname"};
  EXPECT_EQ(ParseCsv(CsvLine(marked))->columns, marked);
}

TEST(TakeMetricName, IsThereOnce) {
  std::unordered_set<std::string> taken = {"images", "batch"};
  EXPECT_EQ(TakeMetricName("rate", taken), "rate");
  EXPECT_EQ(TakeMetricName("images", taken), "measured_images");
  EXPECT_EQ(TakeMetricName("measured_images", taken), "measured_measured_images");
  EXPECT_EQ(TakeMetricName("rate", taken), "measured_rate");
  EXPECT_EQ(TakeMetricName("", taken), "measured_");
}

TEST(ParseNumber, TakesFiniteNumbersOnly) {
  EXPECT_EQ(ParseNumber("-1.5e3").value(), -1500);
  EXPECT_EQ(ParseNumber("+2").value(), 2);
  for (const char* bad : {"", "1x", " 1", "nan", "inf", "1e999", "+-1", "0x10"}) {
    EXPECT_FALSE(ParseNumber(bad).has_value()) << bad;
  }
}

TEST(CsvLine, DefusesFormulasAndLeavesNumbers) {
  const std::vector<std::string> formulas = {"=1+1", "+x",  "-x",  "@x", "\tx",
                                             "\rx",  "'=1", "''@", "-",  "+-1"};
  for (const std::string& formula : formulas) {
    EXPECT_EQ(Defused(formula), "'" + formula);
    EXPECT_EQ(Armed(Defused(formula)), formula);
  }
  for (const std::string cell : {"-0.5", "+3", "-1e-9", "-inf", "x=1", "'x", "", "'", "a-b"}) {
    EXPECT_EQ(Defused(cell), cell);
    EXPECT_EQ(Armed(cell), cell);
  }
  EXPECT_EQ(CsvLine(std::vector<std::string>{"=a,b", "-1"}), "\"'=a,b\",-1\n");
  EXPECT_EQ(ParseCsv("'=a,b\n'=1,'x\n")->cells, (std::vector<std::string>{"=1", "'x"}));
  std::vector<std::string> cells = formulas;
  std::erase(cells, "\rx");  // ParseCsv takes no lone CR
  std::string header = "a";
  for (size_t i = 1; i < cells.size(); ++i) header += fmt::format(",a{}", i);
  EXPECT_EQ(ParseCsv(header + "\n" + CsvLine(cells))->cells, cells);
}

TEST(PickRows, TakesRowsInTheOrderAsked) {
  const Csv csv = *ParseCsv("a,b\n1,x\n2,y\n3,z\n");
  const Csv picked = PickRows(csv, std::vector<int64_t>{2, 0, 2});
  EXPECT_THAT(picked.cells, testing::ElementsAre("3", "z", "1", "x", "3", "z"));
  EXPECT_THAT(picked.lines, testing::ElementsAre(4, 2, 4));
}

TEST(WithColumn, SetsOrAddsAColumn) {
  const Csv csv = *ParseCsv("a,b\n1,x\n2,y\n");
  EXPECT_THAT(WithColumn(csv, "a", "7").cells, testing::ElementsAre("7", "x", "7", "y"));
  const Csv added = WithColumn(csv, "c", "7");
  EXPECT_THAT(added.columns, testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(added.cells, testing::ElementsAre("1", "x", "7", "2", "y", "7"));
}

}  // namespace
}  // namespace weir
