#include "predict/table/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value Look(std::string_view name) {
  if (name == "x") return {.number = 3, .text = "3"};
  if (name == "y") return {.number = -2, .text = "-2"};
  if (name == "word") return {.number = std::nullopt, .text = "nvlink"};
  return {};
}

std::optional<double> Work(std::string_view text) {
  const auto expression = Expression::Parse(text);
  if (!expression) {
    ADD_FAILURE() << expression.error().message;
    return std::nullopt;
  }
  return expression->Evaluate(Look);
}

TEST(Expression, BindsAsArithmeticDoes) {
  EXPECT_EQ(Work("1 + 2 * x ^ 2"), 19);
  EXPECT_EQ(Work("-x ^ 2"), -9);
  EXPECT_EQ(Work("2 ^ x ^ 2"), 512);
  EXPECT_EQ(Work("2 ^ -1 + 1"), 1.5);
  EXPECT_EQ(Work("not x == 4 and not not x == 3"), 1);
  EXPECT_EQ(Work("(1 + 2) * x"), 9);
  EXPECT_EQ(Work("2 - 3 - 4"), -5);
  EXPECT_EQ(Work("-x + 12 / x / 2"), -1);
  EXPECT_EQ(Work("1e3 * .5"), 500);
}

TEST(Expression, ComparesNumbersAndTexts) {
  EXPECT_EQ(Work("x > 2 and y < 0"), 1);
  EXPECT_EQ(Work("word == 'nvlink'"), 1);
  EXPECT_EQ(Work("word != 'pcie' and not (word == '')"), 1);
  EXPECT_EQ(Work("x == '3'"), 1);
  EXPECT_EQ(Work("nothing == ''"), 1);
  EXPECT_EQ(Work("x + 1 == ''"), 0);
  EXPECT_EQ(Work("if(word == 'nvlink', x, y)"), 3);
  EXPECT_EQ(Work("x >= 3 or nothing"), 1);
}

TEST(Expression, KnowsFunctions) {
  EXPECT_DOUBLE_EQ(Work("log(exp(x))").value(), 3);
  EXPECT_EQ(Work("max(x, y) + min(x, y) + abs(y)"), 3);
  EXPECT_EQ(Work("ceil(x / 2) * 10 + floor(x / 2)"), 21);
  EXPECT_EQ(Work("sqrt(x + 1)"), 2);
}

TEST(Expression, WhatIsUnknownStaysUnknown) {
  for (const char* text :
       {"nothing + 1", "1 / (x - 3)", "log(y)", "sqrt(y)", "exp(1000)", "word * 2", "0 - nothing"}) {
    EXPECT_EQ(Work(text), std::nullopt) << text;
  }
  EXPECT_EQ(Work("nothing ?? 7"), 7);
  EXPECT_EQ(Work("nothing ?? unknown ?? x"), 3);
}

TEST(Expression, NamesItsColumnsOnce) {
  EXPECT_THAT(Expression::Parse("x + log(y) * x")->names(), ElementsAre("x", "y"));
}

TEST(Expression, RefusesWithThePosition) {
  const auto refusal = [](std::string_view text) {
    const auto expression = Expression::Parse(text);
    return expression ? "parsed" : expression.error().message;
  };
  EXPECT_THAT(refusal("1 +"), HasSubstr("position 4: something is missing"));
  EXPECT_THAT(refusal("(1"), HasSubstr("position 3: \")\" is missing"));
  EXPECT_THAT(refusal("1 < x < 8"), HasSubstr("comparisons are not chained"));
  EXPECT_THAT(refusal("1 2"), HasSubstr("position 3: nothing more"));
  EXPECT_THAT(refusal("sin(1)"), HasSubstr("no function \"sin\""));
  EXPECT_THAT(refusal("if(1, 2)"), HasSubstr("if takes 3 values"));
  EXPECT_THAT(refusal("x == 'a"), HasSubstr("not closed"));
  EXPECT_THAT(refusal("x & y"), HasSubstr("position 3"));
  EXPECT_THAT(refusal(std::string(200, '(')), HasSubstr("64 levels"));
  EXPECT_THAT(refusal(std::string(200, '-') + "1"), HasSubstr("64 levels"));
  EXPECT_THAT(refusal(std::string(5000, '1')), HasSubstr("4096 bytes"));
}

}  // namespace
}  // namespace weir::predict
