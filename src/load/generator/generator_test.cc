#include "load/generator/generator.h"

#include <gmock/gmock.h>

#include <deque>

#include "base/mutex.h"
#include "base/thread.h"
#include "load/verdict/judge.h"

namespace weir::load {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers before Submit returns.
class InlineService final : public infer::Service {
 public:
  void Submit(infer::Call call) override {
    ++submitted;
    call.Answer(infer::Response{});
  }
  std::atomic<int64_t> submitted = 0;
};

// Answers before Submit returns, and says that the answer came at once, though it is told of later.
class LateTellingService final : public infer::Service {
 public:
  void Submit(infer::Call call) override {
    const SteadyClock clock;
    const Instant came = clock.Now();
    call.times.sent = call.times.first_byte = call.times.done = came;
    call.times.written = came;
    while (clock.Now() < came + kLater) continue;
    call.Answer(infer::Response{});
  }
  static constexpr Duration kLater = 200us;
};

// Keeps calls until it is asked for them.
class HoldingService final : public infer::Service {
 public:
  void Submit(infer::Call call) override {
    MutexLock lock(mutex_);
    held_.push_back(std::move(call));
  }
  void AnswerAll(const Result<infer::Response>& answer) {
    std::deque<infer::Call> calls;
    {
      MutexLock lock(mutex_);
      calls.swap(held_);
    }
    for (infer::Call& call : calls) call.Answer(answer);
  }

 private:
  Mutex mutex_;
  std::deque<infer::Call> held_ GUARDED_BY(mutex_);
};

// Answers on a thread of its own.
class ThreadedService final : public infer::Service {
 public:
  ThreadedService()
      : thread_(StartThread("answers", [this](const std::stop_token& stop) {
          while (!stop.stop_requested()) service_.AnswerAll(infer::Response{});
        })) {}
  void Submit(infer::Call call) override { service_.Submit(std::move(call)); }

 private:
  HoldingService service_;
  std::jthread thread_;
};

Requests OneRequest() { return {.pool = {infer::Request{.model = "m"}}, .check = {}}; }

RunOutcome MustPlay(infer::Service& service, const PlayOptions& options, const PlayHooks& hooks = {},
                    const Requests& requests = OneRequest(), const std::stop_token& stop = {}) {
  const SteadyClock clock;
  auto played = Play(service, requests, clock, options, hooks, stop);
  CHECK(played.has_value());
  return *std::move(played);
}

TEST(Play, SendsAsManyRequestsAsAreWanted) {
  for (const auto wait : {Concurrency::Wait::kAsync, Concurrency::Wait::kSync}) {
    InlineService service;
    const RunOutcome played = MustPlay(service, {.scenario = Concurrency{.in_flight = 3, .wait = wait},
                                                 .warm_up = 0s,
                                                 .warm_up_requests = 10,
                                                 .requests = 1000});
    EXPECT_EQ(played.tally.planned(), 1000);
    EXPECT_EQ(played.tally.answered(), 1000);
    EXPECT_EQ(service.submitted, 1000 + played.warm_up_requests);
    EXPECT_GE(played.warm_up_requests, 10);
    EXPECT_GT(played.throughput(), 0);
  }
}

TEST(Play, GoesOnWithAPlaceWhoeverBringsItsAnswer) {
  for (const auto wait : {Concurrency::Wait::kAsync, Concurrency::Wait::kSync}) {
    ThreadedService service;
    const RunOutcome played = MustPlay(
        service, {.scenario = Concurrency{.in_flight = 4, .wait = wait}, .warm_up = 0s, .requests = 2000});
    EXPECT_EQ(played.tally.answered(), 2000);
  }
}

TEST(Play, KeepsARate) {
  ThreadedService service;
  const RunOutcome played =
      MustPlay(service, {.scenario = Rate{.per_second = 2000}, .warm_up = 0s, .length = 100ms});
  EXPECT_EQ(played.tally.planned(), 200);
  EXPECT_GT(played.tally.answered(), 0);  // on a busy machine some leave too late
  EXPECT_DOUBLE_EQ(played.measured_s, 0.1);
}

TEST(Play, TakesAnAnswersArrivalForItsEnd) {
  LateTellingService service;
  const RunOutcome played =
      MustPlay(service, {.scenario = Concurrency{.in_flight = 1}, .warm_up = 0s, .requests = 50});
  EXPECT_LT(*played.tally.service.Quantile(0.5), 1000) << "ns";
}

TEST(Play, CountsAsUnsentWhatCouldNotLeave) {
  HoldingService service;
  PlayHooks hooks;
  hooks.give_up = [&] { service.AnswerAll(Fail(ErrorCode::kCancelled, "gone")); };
  const RunOutcome played = MustPlay(service,
                                     {.scenario = Rate{.per_second = 1000, .most_in_flight = 5},
                                      .warm_up = 0s,
                                      .length = 50ms,
                                      .drain = 1ms},
                                     hooks);
  EXPECT_EQ(played.tally.planned(), 50);
  EXPECT_EQ(played.tally.of(Outcome::kTimedOut), 5);
  EXPECT_EQ(played.tally.of(Outcome::kUnsent), 45);
}

TEST(Play, DrivesAServiceWithoutThreads) {
  HoldingService service;
  std::atomic<int> drives = 0;
  PlayHooks hooks;
  hooks.drive = [&](Instant until, Duration) {
    ++drives;
    service.AnswerAll(infer::Response{});
    SleepUntil(std::min(until, SteadyClock().Now() + 100us));
    return Duration{};
  };
  const RunOutcome closed =
      MustPlay(service, {.scenario = Concurrency{.in_flight = 2}, .warm_up = 0s, .requests = 20}, hooks);
  EXPECT_EQ(closed.tally.answered(), 20);
  const RunOutcome open =
      MustPlay(service, {.scenario = Rate{.per_second = 1000}, .warm_up = 0s, .length = 20ms}, hooks);
  EXPECT_EQ(open.tally.planned(), 20);
  EXPECT_GT(open.tally.answered(), 0);
  EXPECT_GT(drives, 0);
}

TEST(Play, EndsThoughNothingIsAnswered) {
  HoldingService service;
  PlayHooks hooks;
  hooks.give_up = [&] { service.AnswerAll(Fail(ErrorCode::kCancelled, "gone")); };
  const RunOutcome played = MustPlay(
      service, {.scenario = Concurrency{.in_flight = 2}, .warm_up = 0s, .length = 5ms, .drain = 1ms}, hooks);
  // Two where the second place began within the 5 ms.
  EXPECT_GE(played.tally.planned(), 1);
  EXPECT_EQ(played.tally.of(Outcome::kTimedOut), played.tally.planned());
  EXPECT_EQ(played.throughput(), 0);
}

TEST(Play, EndsThoughNothingIsAnsweredWhereItDrives) {
  for (const Scenario& scenario :
       {Scenario(Concurrency{.in_flight = 2}), Scenario(Rate{.per_second = 100})}) {
    HoldingService service;
    PlayHooks hooks;
    hooks.drive = [](Instant until, Duration) {
      SleepUntil(until);
      return Duration{};
    };
    hooks.give_up = [&] { service.AnswerAll(Fail(ErrorCode::kCancelled, "gone")); };
    const RunOutcome played =
        MustPlay(service, {.scenario = scenario, .warm_up = 0s, .length = 50ms, .drain = 1ms}, hooks);
    EXPECT_GE(played.tally.planned(), 1);
    EXPECT_EQ(played.tally.answered(), 0);
  }
}

TEST(Play, StopsWhenAskedAndTellsWhatThereWas) {
  ThreadedService service;
  std::stop_source stop;
  PlayHooks hooks;
  hooks.measuring = [&](const RequestCounter&) { stop.request_stop(); };
  const RunOutcome played =
      MustPlay(service, {.scenario = Concurrency{.in_flight = 2}, .warm_up = 0s, .length = 1h}, hooks,
               OneRequest(), stop.get_token());
  EXPECT_TRUE(played.interrupted);
  EXPECT_EQ(played.tally.planned(), played.tally.answered());
}

TEST(Play, CountsTheRequestsOfTheWarmUpToo) {
  InlineService service;
  PlayHooks hooks;
  RequestsSoFar first, last;
  hooks.measuring = [&](const RequestCounter& so_far) { first = so_far(); };
  hooks.measured = [&](const RequestCounter& so_far) { last = so_far(); };
  const RunOutcome played = MustPlay(
      service,
      {.scenario = Concurrency{.in_flight = 2}, .warm_up = 0s, .warm_up_requests = 10, .requests = 20},
      hooks);
  EXPECT_EQ(service.submitted, 30);
  EXPECT_EQ(played.requests, (RequestsSoFar{.begun = 30, .answered = 30}));
  EXPECT_GE(first.begun, 10);
  EXPECT_EQ(last, played.requests);
}

TEST(Play, TellsEveryMeasuredRequest) {
  ThreadedService service;
  std::vector<Sample> samples;
  PlayHooks hooks;
  hooks.samples = [&](std::span<const Sample> more) {
    samples.insert(samples.end(), more.begin(), more.end());
  };
  const RunOutcome played =
      MustPlay(service, {.scenario = Concurrency{.in_flight = 2}, .warm_up = 0s, .requests = 500}, hooks);
  ASSERT_EQ(samples.size(), 500u);
  EXPECT_EQ(played.samples_lost, 0);
  for (const Sample& sample : samples) {
    EXPECT_LE(sample.planned, sample.sent);
    EXPECT_LE(sample.sent, sample.done);
  }
}

TEST(Play, CountsFailuresByTheirKindWithTheFirstWords) {
  HoldingService service;
  PlayHooks hooks;
  hooks.drive = [&](Instant, Duration) {
    service.AnswerAll(Fail(ErrorCode::kOverloaded, "the queue is full"));
    return Duration{};
  };
  const RunOutcome played =
      MustPlay(service, {.scenario = Concurrency{}, .warm_up = 0s, .requests = 10}, hooks);
  EXPECT_EQ(played.tally.of(Outcome::kRefused), 10);
  EXPECT_EQ(played.tally.response.count(), 0);
  EXPECT_THAT(played.errors, ElementsAre(HasSubstr("the queue is full")));
}

// Answers before Submit returns that nobody listens there.
class ClosedPort final : public infer::Service {
 public:
  void Submit(infer::Call call) override { call.Answer(Fail(ErrorCode::kIo, "Connection refused")); }
};

// At 0, 1, 3, 7, 15, 31, 63 and 127 ms and every 100 ms from there: 16 in a second, for each place.
TEST(Play, AsksAServerThatRefusesConnectionsLessAndLess) {
  ClosedPort service;
  ManualClock clock;
  PlayHooks hooks;
  hooks.drive = [&](Instant until, Duration) {
    clock.Advance(std::max(Duration{}, until - clock.Now()));
    return Duration{};
  };
  const auto played = Play(service, OneRequest(), clock,
                           {.scenario = Concurrency{.in_flight = 3}, .warm_up = 0s, .length = 1s}, hooks, {});
  ASSERT_TRUE(played.has_value());
  EXPECT_EQ(played->tally.planned(), 3 * 16);
  EXPECT_EQ(played->tally.of(Outcome::kNoServer), 3 * 16);
  EXPECT_THAT(played->errors, ElementsAre(HasSubstr("Connection refused")));
}

// Before 50 ms have passed no more than at 0, 1, 3, 7, 15 and 31 ms.
TEST(Play, RestsWhoeverKeepsThePlaces) {
  for (const auto wait : {Concurrency::Wait::kAsync, Concurrency::Wait::kSync}) {
    ClosedPort service;
    const RunOutcome played = MustPlay(
        service, {.scenario = Concurrency{.in_flight = 3, .wait = wait}, .warm_up = 0s, .length = 50ms});
    EXPECT_GE(played.tally.planned(), 3);
    EXPECT_LE(played.tally.planned(), 3 * 6);
    EXPECT_EQ(played.tally.of(Outcome::kNoServer), played.tally.planned());
  }
}

TEST(Play, HoldsAnswersAgainstWhatMustCome) {
  InlineService service;  // answers without outputs
  Requests requests = OneRequest();
  requests.check =
      HasOutputs({{infer::Tensor{
                     .name = "out", .dtype = infer::DType::kFp32, .shape = {1}, .data = Bytes::Allocate(4)}}},
                 0);
  const RunOutcome played =
      MustPlay(service, {.scenario = Concurrency{}, .warm_up = 0s, .requests = 10}, {}, requests);
  EXPECT_EQ(played.tally.of(Outcome::kWrongAnswer), 10);
  EXPECT_THAT(played.errors, ElementsAre(HasSubstr("output out is missing")));
}

TEST(Play, RefusesSettingsThatMakeNoRun) {
  InlineService service;
  const SteadyClock clock;
  const auto refused = [&](const PlayOptions& options, const Requests& requests = OneRequest()) {
    return !Play(service, requests, clock, options, {}, {}).has_value();
  };
  EXPECT_TRUE(refused({.scenario = Concurrency{.in_flight = 0}}));
  EXPECT_TRUE(refused({.scenario = Concurrency{}, .length = 0s}));
  EXPECT_TRUE(refused({.scenario = Rate{.per_second = -1}}));
  EXPECT_TRUE(refused({.scenario = Concurrency{}}, Requests{}));
}

}  // namespace
}  // namespace weir::load
