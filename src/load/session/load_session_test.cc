#include "load/session/load_session.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "load/testing/fake_target.h"

namespace weir::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoadSessionTest : public ::testing::Test {
 protected:
  LoadSessionTest() { options_.warm_up_s = 0; }

  LevelResult Play(const LevelLength& length, SessionHooks hooks = {}) {
    LoadSession session(options_, target_, requests_, clock_, std::move(hooks), stop_);
    auto result =
        session.PlayLevel({.scenario = Concurrency{2}, .name = "concurrency 2"}, length, 0, Seed(1));
    CHECK(result.has_value());
    ceiling_ = session.ceiling();
    return *std::move(result);
  }

  const SteadyClock clock_;
  const std::stop_token stop_;
  const Requests requests_{.pool = {infer::Request{.model = "m"}}, .check = {}};
  LoadOptions options_;
  FakeTarget target_;
  std::optional<Ceiling> ceiling_;
};

TEST_F(LoadSessionTest, AddsUpTheRepeatsOfALevel) {
  const LevelResult level = Play({.requests = 50, .repeats = 3});
  EXPECT_EQ(level.repeats.size(), 3U);
  EXPECT_EQ(level.answered(), 150);
  EXPECT_EQ(target_.inner.submitted, 150);
  double measured = 0;
  for (const RunOutcome& repeat : level.repeats) measured += repeat.measured_s;
  EXPECT_DOUBLE_EQ(level.measured_s, measured);
  EXPECT_GT(level.throughput(), 0);
  EXPECT_TRUE(level.resources.has_value());
  EXPECT_FALSE(level.server_resources.has_value()) << "no server was named";
}

TEST_F(LoadSessionTest, FailuresAreCountedAndJudged) {
  target_.inner.answer = Fail(ErrorCode::kOverloaded, "no room");
  const LevelResult level = Play({.requests = 40});
  EXPECT_EQ(level.tally.of(Outcome::kRefused), 40);
  EXPECT_EQ(level.claims.throughput.standing, results::Standing::kInvalid);
}

TEST_F(LoadSessionTest, ComparesTheServersCountsWithItsOwn) {
  target_.counts = true;
  LevelResult level = Play({.requests = 100, .repeats = 2});
  ASSERT_TRUE(level.server_share.has_value());
  EXPECT_EQ(level.server_share->others_at_least(), 0);
  EXPECT_EQ(level.server_share->counted, 200);
  EXPECT_EQ(level.server.success.count, 200U);
  target_.others = 60;
  level = Play({.requests = 100});
  EXPECT_EQ(level.server_share->others_at_least(), 60);
  EXPECT_EQ(level.claims.throughput.standing, results::Standing::kInvalid);
}

TEST_F(LoadSessionTest, AnswersTheThresholdForAllRepeatsTogether) {
  options_.latency_threshold_ms = 1000;
  options_.percentile = 90;
  EXPECT_EQ(Play({.requests = 100, .repeats = 3}).below_threshold, stats::Answer::kYes);
  options_.latency_threshold_ms = 0;
  EXPECT_FALSE(Play({.requests = 10}).below_threshold.has_value());
}

TEST_F(LoadSessionTest, MeasuresTheCeilingOnceAndOnlyWhereAsked) {
  int measured = 0;
  SessionHooks hooks;
  hooks.measure_ceiling = [&]() -> Result<Ceiling> {
    ++measured;
    return Ceiling{.per_s = 5000, .floor_ms = 0.1};
  };
  options_.calibrate = true;
  Play({.requests = 10, .repeats = 3}, hooks);
  EXPECT_EQ(measured, 1);
  ASSERT_TRUE(ceiling_.has_value());
  EXPECT_EQ(ceiling_->per_s, 5000);
}

TEST_F(LoadSessionTest, NotesWhyTheCeilingIsNotKnown) {
  std::vector<std::string> notes;
  SessionHooks hooks{.note = [&](const std::string& line) { notes.push_back(line); }};
  hooks.measure_ceiling = []() -> Result<Ceiling> { return Fail(ErrorCode::kIo, "no port is free"); };
  options_.calibrate = true;
  Play({.requests = 10, .repeats = 2}, hooks);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("no port is free")));
  EXPECT_FALSE(ceiling_.has_value());
}

TEST_F(LoadSessionTest, WatchesTheServerThatIsNamed) {
  options_.server.metrics_url = "http://here/metrics";
  SessionHooks hooks;
  hooks.server.fetch = [](const std::string&) -> Result<std::string> { return "some_metric 1\n"; };
  EXPECT_TRUE(Play({.requests = 20}, hooks).server_resources.has_value());
}

TEST_F(LoadSessionTest, WritesTheSamplesOfEveryRepeat) {
  const TemporaryFolder folder = TemporaryFolder::Make("load-session").value();
  options_.samples = folder.path() + "/samples";
  LoadSession session(options_, target_, requests_, clock_, {}, stop_);
  const Level level{.scenario = Concurrency{1}, .name = "concurrency 1"};
  ASSERT_TRUE(session.KeepSamples({level}));
  ASSERT_TRUE(session.PlayLevel(level, {.requests = 25, .repeats = 2}, 0, Seed(1)));
  ASSERT_TRUE(session.Finish());
  EXPECT_GT(std::filesystem::file_size(options_.samples), 50U);
}

TEST_F(LoadSessionTest, KeepsARunThatTheUserStoppedOutOfTheRepeats) {
  std::stop_source stopped;
  stopped.request_stop();
  const std::stop_token stop = stopped.get_token();
  LoadSession session(options_, target_, requests_, clock_, {}, stop);
  const auto level =
      session.PlayLevel({.scenario = Concurrency{1}, .name = ""}, {.requests = 5, .repeats = 3}, 0, Seed(1));
  ASSERT_TRUE(level);
  EXPECT_TRUE(level->repeats.empty());
}

TEST(MeasureCeilingAgainst, CountsWhatTheGeneratorCanSend) {
  const SteadyClock clock;
  FakeTarget null;
  const auto ceiling =
      MeasureCeilingAgainst(null, {infer::Request{.model = "m"}}, Concurrency::Wait::kAsync, clock, {});
  ASSERT_TRUE(ceiling);
  EXPECT_EQ(null.prepared, 1);
  EXPECT_GT(ceiling->per_s, 0);
  EXPECT_GT(ceiling->floor_ms.value_or(0), 0);
}

TEST(MeasureCeilingAgainst, SaysWhyNothingWasAnswered) {
  const SteadyClock clock;
  FakeTarget null;
  null.inner.answer = Fail(ErrorCode::kIo, "it is gone");
  const auto ceiling =
      MeasureCeilingAgainst(null, {infer::Request{.model = "m"}}, Concurrency::Wait::kAsync, clock, {});
  ASSERT_FALSE(ceiling);
  EXPECT_THAT(ceiling.error().message, HasSubstr("it is gone"));
  null.prepare = Fail(ErrorCode::kInvalidArgument, "no such input");
  EXPECT_FALSE(MeasureCeilingAgainst(null, {}, Concurrency::Wait::kAsync, clock, {}));
}

}  // namespace
}  // namespace weir::load
