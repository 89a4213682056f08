#include "advise/cards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace weir::advise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SharedStep, DividesABatchAmongTheCards) {
  std::vector<std::string> notes;
  EXPECT_EQ(*SharedStep("1xh100", {.profile = "resnet50", .batch = 400}, notes), 224ms);
  EXPECT_THAT(notes, ElementsAre("a step of resnet50-h100 takes 224 ms for 400 samples (MLPerf Storage v2)"));
  EXPECT_EQ(*SharedStep("4xH100", {.profile = "resnet50", .batch = 400}, notes), 56ms);
  EXPECT_EQ(*SharedStep("8xh100", {.profile = "resnet50", .batch = 9}, notes), 1120us);  // two samples
}

TEST(SharedStep, RefusesRangesAndUnnamedCards) {
  std::vector<std::string> notes;
  for (const char* text : {"8", "1:8xh100", "8x"})
    EXPECT_THAT(SharedStep(text, {.profile = "resnet50", .batch = 8}, notes).error().message,
                HasSubstr("8xh100"))
        << text;
  EXPECT_EQ(SharedStep("8xb200", {.profile = "resnet50", .batch = 8}, notes).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(SharedStep("8xh100", {.predictor = "/no/such/file", .batch = 8}, notes).error().code,
            ErrorCode::kNotFound);
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace weir::advise
