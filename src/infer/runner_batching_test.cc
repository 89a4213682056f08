// Runners that put calls together, and those of sessions that answer later.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "infer/runner.h"
#include "infer/testing/answers.h"
#include "infer/testing/fake_session.h"
#include "infer/testing/make_runner.h"

namespace weir::infer {
namespace {

using testing::Answers;
using testing::FakeSession;
using testing::FloatTensor;
using testing::MakeRunner;

// Two calls that wait while a first one, "runs", computes: with Open they go together.
void SubmitTwoBehindARunning(Runner& runner, FakeSession& session, Answers& answers) {
  session.Close();
  runner.Submit(answers.MakeCall("runs", {FloatTensor("x", {1, 1}, {0})}));
  session.WaitForRuns(1);
  runner.Submit(answers.MakeCall("one", {FloatTensor("x", {1, 1}, {1})}));
  runner.Submit(answers.MakeCall("two", {FloatTensor("x", {2, 1}, {2, 3})}));
}

TEST(Runner, PutsWaitingCallsTogetherAndTakesTheirAnswersApart) {
  for (const bool asynchronous : {false, true}) {
    ManualClock clock;
    auto session =
        std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous, .answer = {}});
    Answers answers;
    const auto runner = MakeRunner(session, clock, {.workers = 1, .batching = {.max_batch = 4}});
    SubmitTwoBehindARunning(*runner, *session, answers);
    EXPECT_EQ(runner->load().queued_calls, 2);
    EXPECT_EQ(runner->load().queued_rows, 3);
    EXPECT_EQ(runner->load().in_flight, 1);
    session->Open();
    const auto answered = answers.Wait(3);
    ASSERT_EQ(session->batches().size(), 2u);
    EXPECT_EQ(testing::Floats(session->batches()[1][0]), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(answered[0].result->executed_batch, 1);
    EXPECT_EQ(answered[1].result->executed_batch, 3);
    EXPECT_EQ(testing::Floats(answered[1].result->outputs[0]), (std::vector<float>{1}));
    EXPECT_EQ(answered[2].result->outputs[0].shape, (Shape{2, 1}));
    EXPECT_EQ(testing::Floats(answered[2].result->outputs[0]), (std::vector<float>{2, 3}));
    EXPECT_EQ(runner->load().in_flight, 0);
  }
}

TEST(Runner, ACallThatIsComputedAloneIsNotCopied) {
  for (const bool asynchronous : {false, true}) {
    ManualClock clock;
    auto session =
        std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous, .answer = {}});
    Answers answers;
    const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4}});
    const Tensor input = FloatTensor("x", {1, 1}, {1});
    runner->Submit(answers.MakeCall("only", {input}));
    EXPECT_EQ(answers.Wait(1)[0].result->outputs[0].data.data(), input.data.data());
  }
}

TEST(Runner, OneBadCallDoesNotFailItsNeighbours) {
  for (const bool asynchronous : {false, true}) {
    ManualClock clock;
    const auto refuse_two = [](const std::vector<Tensor>& inputs) -> Result<RunResult> {
      for (const float x : testing::Floats(inputs[0])) {
        if (x == 2) return Fail(ErrorCode::kInvalidArgument, "a two");
      }
      return RunResult{.outputs = inputs};
    };
    auto session = std::make_shared<FakeSession>(
        FakeSession::Options{.asynchronous = asynchronous, .answer = refuse_two});
    Answers answers;
    auto runner = MakeRunner(session, clock, {.workers = 1, .batching = {.max_batch = 4}});
    SubmitTwoBehindARunning(*runner, *session, answers);
    session->Open();
    runner.reset();
    const auto answered = answers.Wait(3);
    ASSERT_TRUE(answered[1].result);
    EXPECT_EQ(testing::Floats(answered[1].result->outputs[0]), (std::vector<float>{1}));
    EXPECT_EQ(answered[1].result->executed_batch, 1);
    EXPECT_EQ(answered[2].result.error().message, "a two");
  }
}

TEST(Runner, ATensorThatIsNotAsItsShapeSaysDoesNotShiftItsNeighbours) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>();
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4}});
  session->Close();
  runner->Submit(answers.MakeCall("runs", {FloatTensor("x", {1, 1}, {0})}));
  session->WaitForRuns(1);
  runner->Submit(answers.MakeCall("long", {FloatTensor("x", {1, 1}, {1, 2})}));
  runner->Submit(answers.MakeCall("good", {FloatTensor("x", {1, 1}, {3})}));
  session->Open();
  EXPECT_EQ(testing::Floats(answers.Wait(3)[2].result->outputs[0]), (std::vector<float>{3}));
}

TEST(Runner, AModelThatCannotBeBatchedIsNamedAsSuch) {
  ManualClock clock;
  const auto one_row = [](const auto&) { return RunResult{.outputs = {FloatTensor("y", {1, 1}, {1})}}; };
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.answer = one_row});
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4}});
  SubmitTwoBehindARunning(*runner, *session, answers);
  session->Open();
  const auto answered = answers.Wait(3);
  EXPECT_TRUE(answered[0].result);
  EXPECT_EQ(answered[1].result.error().code, ErrorCode::kInternal);
  EXPECT_NE(answered[2].result.error().message.find("'y'"), std::string::npos);
}

TEST(Runner, StampsWhenACallLeavesTheQueueAndWhenItsBatchBegins) {
  ManualClock clock(Instant(10s));
  auto session = std::make_shared<FakeSession>();
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4}});
  SubmitTwoBehindARunning(*runner, *session, answers);
  clock.Advance(5ms);
  session->Open();
  const auto answered = answers.Wait(3);
  EXPECT_EQ(answered[2].times.queued, Instant(10s));
  EXPECT_EQ(answered[2].times.taken, Instant(10s + 5ms));
  EXPECT_EQ(answered[2].times.started, Instant(10s + 5ms));
  EXPECT_EQ(answered[2].times.done, Instant(10s + 5ms));
}

TEST(Runner, DoesNotComputeWhatWasCancelledWhileItWaited) {
  for (const bool asynchronous : {false, true}) {
    ManualClock clock;
    auto session =
        std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous, .answer = {}});
    session->Close();
    Answers answers;
    const auto runner = MakeRunner(session, clock);
    runner->Submit(answers.MakeCall("runs"));
    session->WaitForRuns(1);
    std::stop_source stop;
    Call left = answers.MakeCall("left");
    left.request.cancelled = stop.get_token();
    runner->Submit(std::move(left));
    stop.request_stop();
    session->Open();
    EXPECT_EQ(answers.Wait(2)[1].result.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(session->batches().size(), 1u);
  }
}

TEST(Runner, ALoneCallerWaitsForTheDelayOnly) {
  for (const bool asynchronous : {false, true}) {
    const SteadyClock clock;
    auto session =
        std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous, .answer = {}});
    Answers answers;
    const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4, .max_wait = 2ms}});
    for (size_t i = 1; i <= 3; ++i) {
      runner->Submit(answers.MakeCall("lone", {FloatTensor("x", {1, 1}, {1})}));
      const Times times = answers.Wait(i).back().times;
      EXPECT_GE(*times.taken - *times.queued, 2ms);
    }
  }
}

TEST(Runner, DoesNotWaitForCompanyWhenItEnds) {
  for (const bool asynchronous : {false, true}) {
    const SteadyClock clock;
    auto session =
        std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous, .answer = {}});
    Answers answers;
    auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4, .max_wait = 3600s}});
    runner->Submit(answers.MakeCall("lone", {FloatTensor("x", {1, 1}, {1})}));
    EXPECT_EQ(answers.count(), 0u);
    runner.reset();
    EXPECT_TRUE(answers.Wait(1)[0].result);
  }
}

TEST(Runner, WhatDoesNotFitTheFirstBatchIsWatchedByAnotherWorker) {
  const SteadyClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.callers = 2, .answer = {}});
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4, .max_wait = 1ms}});
  session->Close();
  runner->Submit(answers.MakeCall("one", {FloatTensor("x", {1, 1}, {1})}));
  runner->Submit(answers.MakeCall("other", {FloatTensor("x", {1, 2}, {1, 2})}));
  session->WaitForRuns(2);  // none has been answered
  session->Open();
  answers.Wait(2);
}

TEST(Runner, AnAsynchronousSessionAnswersInsideOfSubmitWhereItCan) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = true, .answer = {}});
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  runner->Submit(answers.MakeCall("only"));
  EXPECT_EQ(answers.count(), 1u);
}

TEST(Runner, KeepsAsManyBatchesInAnAsynchronousSessionAsItTakes) {
  ManualClock clock;
  auto session =
      std::make_shared<FakeSession>(FakeSession::Options{.callers = 2, .asynchronous = true, .answer = {}});
  session->Close();
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.max_queue = 1});
  for (const char* id : {"runs", "runs too", "waits"}) runner->Submit(answers.MakeCall(id));
  EXPECT_EQ(session->batches().size(), 2u);
  runner->Submit(answers.MakeCall("too many"));
  EXPECT_EQ(answers.Wait(1)[0].result.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(session->Finish());
  EXPECT_EQ(session->batches().size(), 3u);  // the end of one began the next
  session->Open();
  EXPECT_EQ(answers.count(), 4u);
}

TEST(Runner, APartBatchThatWouldWaitInTheEngineWaitsForCompanyInstead) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{
      .streams = 1, .callers = 2, .asynchronous = true, .answer = [&](const auto& inputs) {
        clock.Advance(4ms);
        return RunResult{.outputs = inputs};
      }});
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 2}});
  const auto submit = [&] { runner->Submit(answers.MakeCall("", {FloatTensor("x", {1, 1}, {1})})); };
  for (int i = 0; i < 8; ++i) submit();  // it learns how long a batch takes
  session->Close();
  submit();
  EXPECT_EQ(session->batches().size(), 9u);
  submit();
  EXPECT_EQ(session->batches().size(), 9u);
  submit();
  EXPECT_EQ(session->batches().size(), 10u);
  EXPECT_EQ(session->batches()[9][0].shape[0], 2);
  session->Open();
  answers.Wait(11);
}

TEST(Runner, CallsThatAnswersBringGoTogether) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = true, .answer = {}});
  session->Close();
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.workers = 1, .batching = {.max_batch = 4}});
  for (int i = 0; i < 3; ++i) {
    Call call = answers.MakeCall("", {FloatTensor("x", {1, 1}, {1})});
    call.completion = Completion([&](const Result<Response>&, const Times&) {
      runner->Submit(answers.MakeCall("next", {FloatTensor("x", {1, 1}, {1})}));
    });
    runner->Submit(std::move(call));
  }
  EXPECT_TRUE(session->Finish());  // the first, alone; its successor joins the others
  EXPECT_TRUE(session->Finish());
  EXPECT_TRUE(session->Finish());
  const auto batches = session->batches();
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[1][0].shape[0], 3);
  EXPECT_EQ(batches[2][0].shape[0], 2);
}

TEST(Runner, TheStackDoesNotGrowWithCallsSubmittedFromCompletions) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = true, .answer = {}});
  const auto runner = MakeRunner(session, clock);
  int left = 1000, depth = 0, deepest = 0;
  std::function<void()> submit = [&] {
    deepest = std::max(deepest, ++depth);
    Call call;
    call.completion = Completion([&](const Result<Response>&, const Times&) {
      if (--left > 0) submit();
    });
    runner->Submit(std::move(call));
    --depth;
  };
  submit();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(deepest, 2);
}

TEST(Runner, AnswersEveryCallOfManyThreadsOnce) {
  for (const bool asynchronous : {false, true}) {
    const SteadyClock clock;
    auto session = std::make_shared<FakeSession>(
        FakeSession::Options{.callers = 2, .asynchronous = asynchronous, .answer = {}});
    Answers answers;
    auto runner =
        MakeRunner(session, clock, {.max_queue = 10'000, .batching = {.max_batch = 8, .max_wait = 100us}});
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&, c] {
        for (int i = 0; i < 500; ++i) {
          const auto value = static_cast<float>(c * 500 + i);
          runner->Submit(
              answers.MakeCall(fmt::format("{}", c * 500 + i), {FloatTensor("x", {1, 1}, {value})}));
        }
      });
    }
    callers.clear();
    runner.reset();
    const auto answered = answers.Wait(2000);
    EXPECT_EQ(answered.size(), 2000u);
    std::set<std::string> ids;
    for (const auto& each : answered) {
      ids.insert(each.id);
      ASSERT_TRUE(each.result);
      EXPECT_EQ(testing::Floats(each.result->outputs[0]), std::vector<float>{std::stof(each.id)});
    }
    EXPECT_EQ(ids.size(), 2000u);
  }
}

TEST(Runner, ACallThatCannotMeetItsDeadlineIsRefusedAtOnce) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.answer = [&](const auto& inputs) {
    clock.Advance(10ms);
    return RunResult{.outputs = inputs};
  }});
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  for (size_t i = 0; i < 8; ++i) {
    runner->Submit(answers.MakeCall("teaches"));
    answers.Wait(i + 1);
  }
  EXPECT_EQ(runner->load().batch_time, 10ms);
  Call late = answers.MakeCall("late");
  late.request.deadline = clock.Now() + 9ms;
  runner->Submit(std::move(late));
  EXPECT_EQ(answers.Wait(9)[8].result.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(session->batches().size(), 8u);
}

}  // namespace
}  // namespace weir::infer
