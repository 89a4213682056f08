#include "infer/runner.h"

#include <gtest/gtest.h>

#include "infer/testing/answers.h"
#include "infer/testing/fake_session.h"
#include "infer/testing/make_runner.h"

namespace weir::infer {
namespace {

using testing::Answers;
using testing::FakeSession;
using testing::FloatTensor;
using testing::MakeRunner;

TEST(Runner, AnswersWithTheOutputsOfTheSession) {
  ManualClock clock;
  Answers answers;
  const auto runner = MakeRunner(std::make_shared<FakeSession>(), clock);
  Call call = answers.MakeCall("one", {FloatTensor("x", {1, 4}, {1, 2, 3, 4})});
  call.request.model = "echo";
  call.request.version = "7";
  runner->Submit(std::move(call));
  const auto answered = answers.Wait(1);
  ASSERT_TRUE(answered[0].result);
  EXPECT_EQ(answered[0].result->model, "echo");
  EXPECT_EQ(answered[0].result->version, "7");
  EXPECT_EQ(answered[0].result->id, "one");
  EXPECT_EQ(testing::Floats(answered[0].result->outputs[0]), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Runner, StampsWhenACallIsQueuedStartedAndDone) {
  ManualClock clock(Instant(10s));
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.answer = [&](const auto& inputs) {
    clock.Advance(5ms);
    return RunResult{.outputs = inputs, .started = {}};
  }});
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  session->Close();
  runner->Submit(answers.MakeCall("first"));
  session->WaitForRuns(1);
  runner->Submit(answers.MakeCall("second"));
  session->Open();
  const auto answered = answers.Wait(2);
  EXPECT_EQ(answered[0].times.queued, Instant(10s));
  EXPECT_EQ(answered[0].times.started, Instant(10s));
  EXPECT_EQ(answered[0].times.done, Instant(10s + 5ms));
  EXPECT_EQ(answered[1].times.queued, Instant(10s));
  EXPECT_EQ(answered[1].times.started, Instant(10s + 5ms));
  EXPECT_EQ(answered[1].times.done, Instant(10s + 10ms));
  EXPECT_FALSE(answered[1].times.sent);
}

TEST(Runner, BelievesTheSessionOnWhenTheEngineBegan) {
  ManualClock clock(Instant(10s));
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.answer = [&](const auto& inputs) {
    clock.Advance(5ms);
    return RunResult{.outputs = inputs, .started = Instant(10s + 3ms)};
  }});
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  runner->Submit(answers.MakeCall("only"));
  EXPECT_EQ(answers.Wait(1)[0].times.started, Instant(10s + 3ms));
}

TEST(Runner, RefusesAtOnceWhatItsQueueCannotHold) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>();
  session->Close();
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.workers = 2, .max_queue = 1});
  for (const char* id : {"runs", "runs too", "waits"}) runner->Submit(answers.MakeCall(id));
  EXPECT_EQ(answers.count(), 0u);
  runner->Submit(answers.MakeCall("too many"));
  const auto refused = answers.Wait(1);
  EXPECT_EQ(refused[0].id, "too many");
  EXPECT_EQ(refused[0].result.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(refused[0].times.queued);
  EXPECT_FALSE(refused[0].times.started);
  session->Open();
  EXPECT_EQ(answers.Wait(4).size(), 4u);
}

TEST(Runner, ACompletionFindsThePlaceOfTheCallItAnswers) {
  ManualClock clock;
  Answers answers;
  const auto runner = MakeRunner(std::make_shared<FakeSession>(), clock, {.workers = 1, .max_queue = 0});
  Call first;
  first.completion = Completion([&](Result<Response> result, const Times&) {
    runner->Submit(answers.MakeCall(result ? "next" : "none"));
  });
  runner->Submit(std::move(first));
  EXPECT_TRUE(answers.Wait(1)[0].result);
}

TEST(Runner, DoesNotComputeACallWhoseDeadlineHasPassed) {
  ManualClock clock(Instant(10s));
  auto session = std::make_shared<FakeSession>();
  session->Close();
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  runner->Submit(answers.MakeCall("runs"));
  session->WaitForRuns(1);
  Call late = answers.MakeCall("late"), in_time = answers.MakeCall("in time");
  late.request.deadline = Instant(10s + 1ms);
  in_time.request.deadline = Instant(10s + 2ms);
  runner->Submit(std::move(late));
  runner->Submit(std::move(in_time));
  clock.Advance(2ms);
  const auto expired = answers.Wait(1);
  EXPECT_EQ(expired[0].id, "late");
  EXPECT_EQ(expired[0].result.error().code, ErrorCode::kDeadline);
  EXPECT_FALSE(expired[0].times.started);
  session->Open();
  const auto answered = answers.Wait(3);
  EXPECT_TRUE(answered[1].result);
  EXPECT_TRUE(answered[2].result);
  EXPECT_EQ(session->batches().size(), 2u);
}

TEST(Runner, AnswersACallThatExpiresWhileTheEngineIsBusy) {
  const SteadyClock clock;
  for (const bool asynchronous : {false, true}) {
    auto session = std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous});
    session->Close();
    Answers answers;
    const auto runner = MakeRunner(session, clock);
    runner->Submit(answers.MakeCall("runs"));
    session->WaitForRuns(1);
    for (const char* id : {"one", "another"}) {  // the second one after the thread has looked once
      Call call = answers.MakeCall(id);
      call.request.deadline = clock.Now() + 1ms;
      const size_t before = answers.count();
      runner->Submit(std::move(call));
      const auto answered = answers.Wait(before + 1);  // the engine still has the first call
      EXPECT_EQ(answered.back().id, id);
      EXPECT_EQ(answered.back().result.error().code, ErrorCode::kDeadline);
    }
    session->Open();
    EXPECT_TRUE(answers.Wait(3)[2].result);
  }
}

TEST(Runner, TellsOfABatchThatHangs) {
  for (const bool asynchronous : {false, true}) {
    ManualClock clock;
    auto session = std::make_shared<FakeSession>(FakeSession::Options{.asynchronous = asynchronous});
    Answers answers;
    const auto runner = MakeRunner(session, clock);
    session->Close();
    runner->Submit(answers.MakeCall("first"));
    session->WaitForRuns(1);
    EXPECT_FALSE(runner->hang(clock.Now() + 1h)) << "the first one may take its time";
    session->Open();
    answers.Wait(1);

    session->Close();
    runner->Submit(answers.MakeCall("hangs"));
    session->WaitForRuns(2);
    EXPECT_FALSE(runner->hang(clock.Now() + 9s));
    const auto hang = runner->hang(clock.Now() + 11s);
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->running, Duration(11s));
    session->Open();
    answers.Wait(2);
    EXPECT_FALSE(runner->hang(clock.Now() + 11s)) << "it has ended";
  }
}

TEST(Runner, DoesNotTakeCallsThatAreComputedAgainForAHang) {
  ManualClock clock;
  int runs = 0;
  auto session = std::make_shared<FakeSession>(
      FakeSession::Options{.answer = [&](const auto& inputs) -> Result<RunResult> {
        if (++runs == 3) return Fail(ErrorCode::kInternal, "only together");
        return RunResult{.outputs = inputs, .started = {}};
      }});
  Answers answers;
  const auto runner = MakeRunner(session, clock, {.batching = {.max_batch = 4}});
  const auto row = [] { return std::vector{FloatTensor("x", {1, 4}, {1, 2, 3, 4})}; };
  runner->Submit(answers.MakeCall("first", row()));
  answers.Wait(1);
  session->Close();
  runner->Submit(answers.MakeCall("second", row()));
  session->WaitForRuns(2);
  for (const char* id : {"a", "b"}) runner->Submit(answers.MakeCall(id, row()));
  session->Open();
  for (const auto& answered : answers.Wait(4)) EXPECT_TRUE(answered.result);
  EXPECT_FALSE(runner->hang(clock.Now() + 24h)) << "nothing is under way";
}

TEST(Runner, PassesTheErrorsOfTheSessionOn) {
  ManualClock clock;
  auto session =
      std::make_shared<FakeSession>(FakeSession::Options{.answer = [](const auto&) -> Result<RunResult> {
        return Fail(ErrorCode::kInvalidArgument, "wrong shape");
      }});
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  runner->Submit(answers.MakeCall("only"));
  const auto answered = answers.Wait(1);
  EXPECT_EQ(answered[0].result.error(), (Error{ErrorCode::kInvalidArgument, "wrong shape"}));
  EXPECT_TRUE(answered[0].times.done);
}

TEST(Runner, FinishesWhatIsQueuedBeforeItEnds) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>();
  session->Close();
  Answers answers;
  auto runner = MakeRunner(session, clock);
  for (int i = 0; i < 5; ++i) runner->Submit(answers.MakeCall("call"));
  session->WaitForRuns(1);
  session->Open();
  runner.reset();
  ASSERT_EQ(answers.count(), 5u);
  for (const auto& answered : answers.Wait(5)) EXPECT_TRUE(answered.result);
}

TEST(Runner, KeepsAsManyCallsRunningAsTheSessionTakes) {
  ManualClock clock;
  auto session = std::make_shared<FakeSession>(FakeSession::Options{.callers = 3, .answer = {}});
  session->Close();
  Answers answers;
  const auto runner = MakeRunner(session, clock);
  for (int i = 0; i < 3; ++i) runner->Submit(answers.MakeCall("call"));
  session->WaitForRuns(3);  // none has been answered
  session->Open();
  answers.Wait(3);
}

TEST(Runner, BadOptionsAreNamed) {
  ManualClock clock;
  const auto session = std::make_shared<FakeSession>();
  const auto workers = Runner::Create(session, clock, {.workers = -1});
  ASSERT_FALSE(workers);
  EXPECT_NE(workers.error().message.find("workers"), std::string::npos);
  const auto queue = Runner::Create(session, clock, {.max_queue = -1});
  ASSERT_FALSE(queue);
  EXPECT_NE(queue.error().message.find("max_queue"), std::string::npos);
}

TEST(Call, DroppedUnansweredIsAnsweredCancelled) {
  Answers answers;
  {
    const Call call = answers.MakeCall("dropped");
  }
  EXPECT_EQ(answers.Wait(1)[0].result.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace weir::infer
