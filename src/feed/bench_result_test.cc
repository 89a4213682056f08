#include "feed/bench_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::feed {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BenchText, NamesTheTrainerTheRejectedAndTheVerdict) {
  results::FeedResult result;
  result.samples_per_s = 1200;
  result.wall_s = 2;
  result.threads = 2;
  result.stages_ms = {.read = 10, .decode = 80, .augment = 10, .wait = 500, .idle = 0};
  result.trainer = {.step_ms = 3.5, .utilisation_percent = 75};
  result.rejected = {{"truncated", 2}};
  result.rejected_examples = {{.name = "a.jpg", .reason = "truncated", .detail = "ends in row 7"}};
  result.verdict = "SUSPECT";
  result.reasons = {{.reason = "steal", .evidence = "3 %"}};
  const std::string text = BenchText(TextStyle(), result);
  EXPECT_THAT(text, HasSubstr("read 10.0 %, decode 80.0 %, augment 10.0 % of their work"));
  EXPECT_THAT(text, HasSubstr("trainer 25.0 % of the time, threads 0.0 %"));
  EXPECT_THAT(text, HasSubstr("busy 75.0 % of the time with steps of 3.50 ms"));
  EXPECT_THAT(text, HasSubstr("could not use 2 truncated\n                a.jpg: ends in row 7"));
  EXPECT_THAT(text, HasSubstr("verdict       SUSPECT\n                steal: 3 %"));
  EXPECT_THAT(text, Not(HasSubstr("class")));
  result.mixing.class_share = 0.2;
  EXPECT_THAT(BenchText(TextStyle(), result), HasSubstr("a batch has 20 % of the classes"));
}

}  // namespace
}  // namespace weir::feed
