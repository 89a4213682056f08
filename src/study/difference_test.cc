#include "study/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::study {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Differences, NamesEachLeafThatDiffers) {
  const Json before{{"build_id", "4f2a"}, {"study", {{"repeats", 20}, {"seed", 1}}}, {"list", {1, 2}}};
  const Json now{{"build_id", "91bc"}, {"study", {{"repeats", 5}, {"seed", 1}}}, {"list", {1, 3}}};
  EXPECT_THAT(Differences(before, now),
              ElementsAre("build_id: 4f2a before, 91bc now", "study.repeats: 20 before, 5 now",
                          "list[1]: 2 before, 3 now"));
}

TEST(Differences, DoNotLieInTheOrderOfKeys) {
  EXPECT_THAT(Differences(Json{{"a", 1}, {"b", 2}}, Json{{"b", 2}, {"a", 1}}), IsEmpty());
}

TEST(Differences, TellWhatIsAbsent) {
  EXPECT_THAT(Differences(Json{{"a", 1}, {"x", 0}}, Json{{"a", 1}, {"b", 2}}),
              ElementsAre("x: 0 before, absent now", "b: absent before, 2 now"));
}

TEST(Differences, ShowListsOfDifferentLengthsWhole) {
  EXPECT_THAT(Differences(Json{{"batch", {1, 2}}}, Json{{"batch", {1, 2, 4}}}),
              ElementsAre("batch: [1,2] before, [1,2,4] now"));
}

TEST(ProvenanceDifferences, AreNotInCommandSeedAndDate) {
  const Json before{{"host", "a"}, {"command", "x"}, {"seed", 1}, {"wall_time", "then"}};
  EXPECT_THAT(
      ProvenanceDifferences(before, Json{{"host", "a"}, {"command", "y"}, {"seed", 2}, {"wall_time", "now"}}),
      IsEmpty());
  EXPECT_THAT(ProvenanceDifferences(before, Json{{"host", "b"}}), ElementsAre("host: a before, b now"));
}

}  // namespace
}  // namespace weir::study
