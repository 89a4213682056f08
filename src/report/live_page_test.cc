#include "report/live_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::report {
namespace {

using testing::HasSubstr;
using testing::Not;

LiveState SomeState() {
  return {.study = "small <1>",
          .metric = "throughput_images_per_s",
          .done = 7,
          .total = 20,
          .suspect = 2,
          .left_s = 61,
          .now = "batch 8, block 2",
          .results = {{.label = "batch <8>", .n = 3, .mean = 100, .low = 90, .high = 110}}};
}

TEST(LivePage, ShowsProgressTimeLeftTheTrialAndTheResults) {
  const std::string page = LivePage(SomeState());
  EXPECT_THAT(page, HasSubstr("<progress value=\"7\" max=\"20\""));
  EXPECT_THAT(page, HasSubstr("7 of 20 trials, 2 SUSPECT, about 2 min left."));
  EXPECT_THAT(page, HasSubstr("Now: batch 8, block 2"));
  EXPECT_THAT(page, HasSubstr("<td>batch &lt;8&gt;</td><td>100 (90 to 110)</td><td>3</td>"));
  EXPECT_THAT(page, HasSubstr("throughput (images/s)"));
  EXPECT_THAT(page, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(LivePage, AsksNoMoreOnceTheStudyHasEnded) {
  LiveState state = SomeState();
  state.finished = true;
  const std::string page = LivePage(state);
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
  EXPECT_THAT(page, HasSubstr("The study has ended"));
}

}  // namespace
}  // namespace weir::report
