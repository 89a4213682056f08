#include "run/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::run {
namespace {

using testing::HasSubstr;

Result<RunEnd> Play(const RunRequest& request, std::vector<std::string>& notes) {
  static const SteadyClock clock;
  const SessionHooks hooks{.note = [&](const std::string& note) { notes.push_back(note); },
                           .progress = [](double, int64_t, int64_t, const std::string&) {},
                           .progress_ended = [] {}};
  return RunOver(request, {}, TextStyle(false), hooks, clock, {});
}

RunRequest Request() {
  RunRequest request;
  request.model = "/nowhere/model.onnx";
  request.data = {"/nowhere"};
  return request;
}

TEST(OptionsFor, SyncModeDecodesOnOneThread) {
  RunRequest request = Request();
  EXPECT_EQ(OptionsFor(request, 8, 4, 16).decode_threads, 16);
  request.mode = Mode::kSync;
  const Options options = OptionsFor(request, 8, 1, 16);
  EXPECT_EQ(options.decode_threads, 1);
  EXPECT_EQ(options.mode, Mode::kSync);
  request.decode_threads = 3;
  EXPECT_EQ(OptionsFor(request, 8, 1, 16).decode_threads, 3);
}

TEST(OptionsFor, TheLoaderGetsTheLimits) {
  RunRequest request = Request();
  request.max_pixels = 1000;
  request.max_file_bytes = 2000;
  request.tolerate_damage = true;
  const Options options = OptionsFor(request, 8, 2, 1);
  EXPECT_EQ(options.loading.decode.max_pixels, 1000);
  EXPECT_EQ(options.loading.max_file_bytes, 2000U);
  EXPECT_TRUE(options.loading.decode.tolerate_damage);
  EXPECT_EQ(options.in_flight, 2);
}

TEST(RunOver, OneFileIsNotBothAnswersAndResult) {
  std::vector<std::string> notes;
  RunRequest request = Request();
  request.answers = request.json = "/tmp/same";
  EXPECT_THAT(Play(request, notes).error().message, HasSubstr("a file of its own"));
}

TEST(RunOver, SaysWhatHasNoEffectBeforeItOpensTheModel) {
  std::vector<std::string> notes;
  RunRequest request = Request();
  request.mode = Mode::kSync;
  request.in_flight = 4;
  const auto end = Play(request, notes);
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("/nowhere/model.onnx"));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("--in-flight has no effect"));
}

}  // namespace
}  // namespace weir::run
