#include "run/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::run {
namespace {

using testing::ElementsAre, testing::SizeIs;

const std::vector<std::string> kLabels = {"cat", "dog"};

TEST(Predictions, KeepsTheFirstAnswersForTheScreen) {
  Predictions predictions(nullptr, kLabels);
  for (int i = 0; i < Predictions::kMostShown + 2; ++i)
    predictions.Answered({.name = "a.jpg"}, {{.class_index = 1, .score = 0.5}});
  EXPECT_THAT(predictions.shown(), SizeIs(Predictions::kMostShown));
  EXPECT_EQ(predictions.shown().front(), "a.jpg  1 dog  0.5");
  EXPECT_TRUE(predictions.Finish());
}

TEST(Predictions, AClassWithoutALabelIsShownByItsNumber) {
  Predictions predictions(nullptr, kLabels);
  predictions.Answered({.name = "a.jpg"}, {{.class_index = 7, .score = 2}});
  predictions.Answered({.name = "b.jpg"}, {});
  EXPECT_THAT(predictions.shown(), ElementsAre("a.jpg  7   2"));
}

}  // namespace
}  // namespace weir::run
