#include "watch/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/play.h"
#include "watch/watch_text.h"

namespace weir::watch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ErrorOf(const WatchRequest& request) {
  const auto options = CompleteRequest(request);
  return options ? "no error" : options.error().message;
}

TEST(CompleteRequest, GivesBothModelsTheSameEngine) {
  WatchRequest request{.streams = {"made:fps=5"}, .embed = "faces"};
  request.options.detect = {.model = "yunet", .recipe = "own.yaml"};
  request.engine = {.engine = "openvino", .threads = 2, .batch = 4};
  const WatchOptions options = *CompleteRequest(request);
  ASSERT_EQ(options.streams.size(), 1U);
  EXPECT_EQ(options.detect.model, "yunet");
  EXPECT_EQ(options.detect.recipe, "own.yaml");
  EXPECT_EQ(options.infer.model, "faces");
  EXPECT_EQ(options.task, Pipeline::Task::kEmbed);
  for (const ModelOptions* one : {&options.detect, &options.infer}) {
    EXPECT_EQ(one->engine, "openvino");
    EXPECT_EQ(one->threads, 2);
    EXPECT_EQ(one->batch, 4);
  }
}

TEST(CompleteRequest, ASearchPlaysTrials) {
  WatchRequest request{.streams = {"made:"}, .classify = "tiny", .find_max = true, .trial = 3s};
  EXPECT_EQ(CompleteRequest(request)->duration, 3s);
  request.find_max = false;
  EXPECT_EQ(CompleteRequest(request)->duration, Duration{});
}

TEST(CompleteRequest, RefusesFlagsThatDoNotGoTogether) {
  EXPECT_THAT(ErrorOf({.streams = {"made:"}}), HasSubstr("--classify"));
  EXPECT_THAT(ErrorOf({.streams = {"made:"}, .embed = "a", .classify = "b"}), HasSubstr("--classify"));
  EXPECT_THAT(ErrorOf({.streams = {"made:"}, .classify = "a", .events = "-", .json = "-"}),
              HasSubstr("standard output"));
  EXPECT_THAT(ErrorOf({.streams = {"made:"}, .classify = "a", .identities = {.folder = "people"}}),
              HasSubstr("--embed"));
  WatchRequest delayed{.streams = {"made:"}, .embed = "a"};
  delayed.options.lookup_delay = 1ms;
  EXPECT_THAT(ErrorOf(delayed), HasSubstr("--identities"));
  EXPECT_THAT(ErrorOf({.streams = {"made:fps=x"}, .classify = "a"}), HasSubstr("made:fps=x"));
}

TEST(CopiesOf, MadeStreamsDifferInTheirSeeds) {
  const std::vector<StreamSpec> copies = CopiesOf({*ParseStream("made:seed=7")}, 3);
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_EQ(copies[0].made.seed, 7U);
  EXPECT_EQ(copies[2].made.seed, 9U);
}

TEST(MeetsClaim, WantsTheShareAndAStream) {
  results::WatchResult result;
  result.in_time_percent = 95;
  EXPECT_TRUE(MeetsClaim({.least_in_time = 95}, result));
  EXPECT_FALSE(MeetsClaim({.least_in_time = 96}, result));
  EXPECT_FALSE(MeetsClaim({.find_max = true}, result));
  result.find_max = results::WatchResult::FindMax{.streams = 2};
  EXPECT_TRUE(MeetsClaim({.find_max = true}, result));
}

TEST(WatchText, NamesDropsAndTheMaximum) {
  results::WatchResult result;
  result.model = "tiny";
  result.frames.captured = 20;
  result.frames.answered = 18;
  result.frames.dropped = {{"superseded", 2}};
  result.deadline_ms = 100;
  const std::string text = WatchText(TextStyle(false), result);
  EXPECT_THAT(text, HasSubstr("20 captured, 18 answered"));
  EXPECT_THAT(text, HasSubstr("2 superseded"));
  EXPECT_THAT(text, Not(HasSubstr("maximum")));
  result.find_max = results::WatchResult::FindMax{.streams = 3};
  EXPECT_THAT(WatchText(TextStyle(false), result), HasSubstr("3 streams hold 100 ms"));
}

}  // namespace
}  // namespace weir::watch
