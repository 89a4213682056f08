#include "http/http_timeouts.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using Action = HttpTimeVerdict::Action;
using Phase = HttpActivity::Phase;

constexpr Instant kStart(1s);

TEST(HttpTimeouts, CutABodyThatComesAByteAtATime) {
  HttpActivity activity{.phase = Phase::kBody, .first_byte = kStart};
  activity.transfer = {.began = kStart, .last_byte = kStart + 20s, .bytes = 1};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 20s).action, Action::kKeep);
  const HttpTimeVerdict verdict = JudgeTime({}, activity, kStart + 21s);
  EXPECT_EQ(verdict.action, Action::kRefuse);
  EXPECT_EQ(verdict.reason, "the body came too slowly");
}

TEST(HttpTimeouts, LeaveABodyAloneThatKeepsTheLeastRate) {
  const HttpTimeouts timeouts{.least_rate = 1000};
  HttpActivity activity{.phase = Phase::kBody, .first_byte = kStart};
  for (int second = 1; second <= 600; ++second) {
    const Instant now = kStart + std::chrono::seconds(second);
    activity.transfer = {.began = kStart, .last_byte = now, .bytes = static_cast<size_t>(second) * 1000};
    EXPECT_EQ(JudgeTime(timeouts, activity, now).action, Action::kKeep) << second;
  }
}

TEST(HttpTimeouts, LeaveABodyAloneWhereNoRateIsAskedFor) {
  const HttpTimeouts timeouts{.least_rate = 0};
  HttpActivity activity{.phase = Phase::kBody, .first_byte = kStart};
  activity.transfer = {.began = kStart, .last_byte = kStart + 500s, .bytes = 1};
  EXPECT_EQ(JudgeTime(timeouts, activity, kStart + 501s).action, Action::kKeep);
}

TEST(HttpTimeouts, CutABodyThatTakesTooLongInAll) {
  const HttpTimeouts timeouts{.request = 60s};
  HttpActivity activity{.phase = Phase::kBody, .first_byte = kStart};
  activity.transfer = {.began = kStart + 1s, .last_byte = kStart + 61s, .bytes = size_t{1} << 30};
  EXPECT_EQ(JudgeTime(timeouts, activity, kStart + 60s).action, Action::kKeep);
  EXPECT_EQ(JudgeTime(timeouts, activity, kStart + 61s).reason, "the request took too long to come");
}

TEST(HttpTimeouts, CutABodyThatStops) {
  HttpActivity activity{.phase = Phase::kBody, .first_byte = kStart};
  activity.transfer = {.began = kStart, .last_byte = kStart + 1s, .bytes = size_t{1} << 30};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 31s).action, Action::kKeep);
  EXPECT_EQ(JudgeTime({}, activity, kStart + 32s).reason, "the body stopped coming");
}

TEST(HttpTimeouts, CutAClientThatReadsItsResponseAByteAtATime) {
  HttpActivity activity{.phase = Phase::kSending};
  activity.transfer = {.began = kStart, .last_byte = kStart + 20s, .bytes = 5};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 20s).action, Action::kKeep);
  EXPECT_EQ(JudgeTime({}, activity, kStart + 21s).action, Action::kClose);
}

TEST(HttpTimeouts, CutHeadersByTheirWholeTime) {
  const HttpActivity activity{.phase = Phase::kHead, .since = kStart};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 10s).action, Action::kKeep);
  EXPECT_EQ(JudgeTime({}, activity, kStart + 11s).action, Action::kRefuse);
}

TEST(HttpTimeouts, GiveAConnectionBeyondTheLimitASecondOnly) {
  for (const Phase phase : {Phase::kIdle, Phase::kHead, Phase::kBody, Phase::kSending}) {
    HttpActivity activity{.phase = phase, .spare = true, .since = kStart, .first_byte = kStart};
    activity.transfer = {.began = kStart, .last_byte = kStart};
    EXPECT_EQ(JudgeTime({}, activity, kStart + 1s).action, Action::kKeep);
    EXPECT_EQ(JudgeTime({}, activity, kStart + 1001ms).action, Action::kClose);
  }
}

TEST(HttpTimeouts, CloseIdleConnectionsWhenTheServerStops) {
  HttpActivity activity{.phase = Phase::kIdle, .since = kStart};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 120s).action, Action::kKeep);
  EXPECT_EQ(JudgeTime({}, activity, kStart + 121s).action, Action::kClose);
  activity.draining = true;
  EXPECT_EQ(JudgeTime({}, activity, kStart).action, Action::kClose);
  activity.spare = true;
  EXPECT_EQ(JudgeTime({}, activity, kStart).action, Action::kKeep)
      << "it is to be told that the server stops";
}

TEST(HttpTimeouts, WaitForTheServersOwnWork) {
  const HttpActivity activity{.phase = Phase::kWorking, .since = kStart};
  EXPECT_EQ(JudgeTime({}, activity, kStart + 10000s).action, Action::kKeep);
}

}  // namespace
}  // namespace weir::http
