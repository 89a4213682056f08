#include "load/validate/validate_text.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(ValidateText, ANoteBreaksNoRule) {
  const auto result =
      MakeValidateResult({{.rule = rule::kBuild, .where = "", .what = "dirty", .fatal = false}});
  EXPECT_TRUE(result.keeps_the_rules);
  EXPECT_EQ(ValidateText(result, "a.json"), "note  build: dirty\na.json: it keeps the rules\n");
}

TEST(ValidateText, AFaultBreaksTheRules) {
  const auto result = MakeValidateResult({{.rule = rule::kOrder, .where = "levels[0]", .what = "p50 > p99"}});
  EXPECT_FALSE(result.keeps_the_rules);
  EXPECT_EQ(ValidateText(result, "a.json"),
            "FAULT levels[0] order: p50 > p99\na.json: it breaks the rules\n");
}

}  // namespace
}  // namespace weir::load
