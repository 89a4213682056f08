#include "infer/batcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/seed.h"
#include "infer/testing/answers.h"

namespace weir::infer {
namespace {

using testing::FloatTensor;

constexpr Instant kStart{100s};
constexpr EngineLoad kIdle{.places = 1, .idle = 1};
constexpr EngineLoad kBusy{.places = 1, .idle = 0};

Batcher MakeBatcher(Batching batching, int max_queue = 256) {
  auto batcher = Batcher::Create({.max_queue = max_queue, .batching = std::move(batching)});
  CHECK(batcher.has_value());
  return *std::move(batcher);
}

Call FakeCall(int64_t rows = 1, const std::string& id = "", int64_t columns = 1) {
  Call call;
  call.request.id = id;
  const auto count = static_cast<size_t>(rows * columns);
  call.request.inputs.push_back(FloatTensor("x", {rows, columns}, std::vector<float>(count)));
  return call;
}

Call WithPriority(Call call, int priority) {
  call.request.priority = priority;
  return call;
}

Call WithDeadline(Call call, Instant deadline) {
  call.request.deadline = deadline;
  return call;
}

Status Offer(Batcher& batcher, Call call, Instant now = kStart, EngineLoad load = kIdle) {
  return batcher.Offer(call, load, now);
}

ErrorCode Refusal(Batcher& batcher, Call call, Instant now = kStart, EngineLoad load = kBusy) {
  const Status status = batcher.Offer(call, load, now);
  return status ? ErrorCode::kInternal : status.error().code;
}

// The result of one Poll: "a b" are the ids of a batch, "wait 500us" or "wait" the time until the next; those
// refused follow, as "; c: deadline".
std::string Poll(Batcher& batcher, Instant now = kStart, EngineLoad load = kIdle) {
  std::vector<Batcher::Refused> refused;
  const auto polled = batcher.Poll(load, now, refused);
  std::string text;
  if (const auto* batch = std::get_if<Batch>(&polled)) {
    for (const Call& call : batch->calls) text += (text.empty() ? "" : " ") + call.request.id;
  } else {
    text = "wait";
    const auto until = std::get<Batcher::Wait>(polled).until;
    if (until)
      text +=
          fmt::format(" {}us", std::chrono::duration_cast<std::chrono::microseconds>(*until - now).count());
  }
  for (const auto& each : refused)
    text += fmt::format("; {}: {}", each.call.request.id, ToString(each.error.code));
  return text;
}

TEST(Batcher, WithoutAWaitSendsWhatIsThere) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  EXPECT_EQ(Poll(batcher), "wait");
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Offer(batcher, FakeCall(1, id)));
  EXPECT_EQ(Poll(batcher), "a b c");
  EXPECT_EQ(Poll(batcher), "wait");
}

TEST(Batcher, SendsAFullBatchAtOnce) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .max_wait = 500us});
  for (const char* id : {"a", "b"}) ASSERT_TRUE(Offer(batcher, FakeCall(2, id)));
  EXPECT_EQ(Poll(batcher), "a b");
}

TEST(Batcher, SendsAPartBatchOnceTheOldestCallHasWaitedLongEnough) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .max_wait = 500us});
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b"), kStart + 300us));
  EXPECT_EQ(Poll(batcher, kStart + 300us), "wait 200us");
  EXPECT_EQ(Poll(batcher, kStart + 500us), "a b");
}

TEST(Batcher, ABatchKnowsItsRowsAndItsCallsWhenTheyCameAndLeft) {
  Batcher batcher = MakeBatcher({.max_batch = 8});
  ASSERT_TRUE(Offer(batcher, FakeCall(3)));
  ASSERT_TRUE(Offer(batcher, FakeCall(2)));
  EXPECT_EQ(batcher.calls(), 2);
  EXPECT_EQ(batcher.rows(), 5);
  std::vector<Batcher::Refused> refused;
  const auto polled = batcher.Poll(kIdle, kStart + 1ms, refused);
  const Batch& batch = std::get<Batch>(polled);
  EXPECT_EQ(batch.total_rows, 5);
  EXPECT_EQ(batch.rows, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(batch.calls[1].times.queued, kStart);
  EXPECT_EQ(batch.calls[1].times.taken, kStart + 1ms);
  EXPECT_TRUE(batcher.empty());
  EXPECT_EQ(batcher.rows(), 0);
}

TEST(Batcher, NeverGoesAboveTheLargestBatch) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .max_wait = 500us});
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Offer(batcher, FakeCall(id[0] == 'c' ? 1 : 3, id)));
  EXPECT_EQ(Poll(batcher), "a");  // b cannot join, so there is nothing to wait for
  EXPECT_EQ(Poll(batcher), "b c");
}

TEST(Batcher, RefusesACallLargerThanABatchAndNamesBothNumbers) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  const Status status = Offer(batcher, FakeCall(5));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(),
            (Error{ErrorCode::kInvalidArgument, "a batch of 5 rows is larger than the model's largest, 4"}));
}

TEST(Batcher, RefusesInputsThatDisagreeAboutTheirRows) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  Call call = FakeCall(2);
  call.request.inputs.push_back(FloatTensor("y", {3}, {1, 2, 3}));
  EXPECT_EQ(Refusal(batcher, std::move(call)), ErrorCode::kInvalidArgument);
  Call scalar;
  scalar.request.inputs.push_back(FloatTensor("x", {}, {1}));
  EXPECT_EQ(Refusal(batcher, std::move(scalar)), ErrorCode::kInvalidArgument);
}

TEST(Batcher, WithoutALargestBatchEveryCallGoesAloneWhateverItsShape) {
  Batcher batcher = MakeBatcher({});
  ASSERT_TRUE(Offer(batcher, FakeCall(1000, "a")));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b")));
  EXPECT_EQ(Poll(batcher), "a");
  EXPECT_EQ(Poll(batcher), "b");
}

TEST(Batcher, CanCountRowsWithoutPuttingCallsTogether) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .combine = false});
  EXPECT_EQ(Refusal(batcher, FakeCall(5)), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b")));
  EXPECT_EQ(Poll(batcher), "a");
}

TEST(Batcher, CallsThatDoNotFitTogetherGoApartInTheirOrder) {
  const auto offer_all = [](Batcher& batcher, Call other) {
    ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
    ASSERT_TRUE(Offer(batcher, std::move(other)));
    ASSERT_TRUE(Offer(batcher, FakeCall(1, "c")));
  };
  Call other_type = FakeCall(1, "b"), other_name = FakeCall(1, "b"), other_outputs = FakeCall(1, "b"),
       other_inputs = FakeCall(1, "b");
  other_type.request.inputs[0].dtype = DType::kInt32;
  other_name.request.inputs[0].name = "y";
  other_outputs.request.outputs = {"scores"};
  other_inputs.request.inputs.push_back(FloatTensor("y", {1, 1}, {1}));
  Call none = FakeCall(1, "b");
  none.request.inputs.clear();
  for (Call* other : {&other_type, &other_name, &other_outputs, &other_inputs, &none}) {
    Batcher batcher = MakeBatcher({.max_batch = 8, .max_wait = 500us});
    offer_all(batcher, std::move(*other));
    EXPECT_EQ(Poll(batcher), "a");
    EXPECT_EQ(Poll(batcher), "b");
    EXPECT_EQ(Poll(batcher), "wait 500us");
  }
  Batcher batcher = MakeBatcher({.max_batch = 8});
  offer_all(batcher, FakeCall(1, "b", 2));
  EXPECT_EQ(Poll(batcher), "a");
  EXPECT_EQ(Poll(batcher), "b");
}

TEST(Batcher, SendsAPreferredSizeAsSoonAsItCanBeMade) {
  Batcher batcher = MakeBatcher({.max_batch = 8, .preferred = {4, 2}, .max_wait = 500us});
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
  EXPECT_EQ(Poll(batcher), "wait 500us");
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b")));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "c")));
  EXPECT_EQ(Poll(batcher), "a b");
  for (const char* id : {"d", "e", "f"}) ASSERT_TRUE(Offer(batcher, FakeCall(1, id)));
  EXPECT_EQ(Poll(batcher), "c d e f");
}

TEST(Batcher, SendsWhatIsThereWhenNoPreferredSizeCameInTime) {
  Batcher batcher = MakeBatcher({.max_batch = 8, .preferred = {4}, .max_wait = 500us});
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Offer(batcher, FakeCall(1, id)));
  EXPECT_EQ(Poll(batcher, kStart + 499us), "wait 1us");
  EXPECT_EQ(Poll(batcher, kStart + 500us), "a b c");
}

TEST(Batcher, SendsABatchThatHasPassedAllPreferredSizes) {
  Batcher batcher = MakeBatcher({.max_batch = 8, .preferred = {4}, .max_wait = 500us});
  for (const char* id : {"a", "b"}) ASSERT_TRUE(Offer(batcher, FakeCall(3, id)));
  EXPECT_EQ(Poll(batcher), "a b");
}

TEST(Batcher, RefusesAtOnceWhatTheQueueCannotHold) {
  Batcher batcher = MakeBatcher({.max_batch = 4}, 2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Offer(batcher, FakeCall()));  // one may go to the idle engine
  const Status status = Offer(batcher, FakeCall());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(),
            (Error{ErrorCode::kOverloaded,
                   "2 calls are waiting and the queue takes no more: send slower, or try later"}));
}

TEST(Batcher, TheHighestPriorityGoesFirstAndTheOthersFillItsBatch) {
  Batcher batcher = MakeBatcher({.max_batch = 3, .priority_levels = 3, .default_priority = 2});
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "low"), 3)));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "default")));
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "beyond"), 9)));
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "high"), 1)));
  EXPECT_EQ(Poll(batcher), "high default beyond");
  EXPECT_EQ(Poll(batcher), "low");
}

TEST(Batcher, ALowCallThatHasWaitedLongEnoughSendsTheBatchItIsIn) {
  Batcher batcher = MakeBatcher({.max_batch = 8, .max_wait = 500us, .priority_levels = 2});
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "low"), 2)));
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "high"), 1), kStart + 400us));
  EXPECT_EQ(Poll(batcher, kStart + 500us), "high low");
}

TEST(Batcher, EveryPriorityHasAQueueLimitOfItsOwn) {
  Batching batching{.max_batch = 4, .priority_levels = 2};
  batching.policies[2].max_queue = 1;
  Batcher batcher = MakeBatcher(batching);
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(), 2), kStart, kBusy));
  EXPECT_EQ(Refusal(batcher, WithPriority(FakeCall(), 2)), ErrorCode::kOverloaded);
  EXPECT_TRUE(Offer(batcher, WithPriority(FakeCall(), 1), kStart, kBusy));
}

TEST(Batcher, ADeadlineThatHasPassedIsRefusedWhenItComesAndWhenItsTurnComes) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  EXPECT_EQ(Refusal(batcher, WithDeadline(FakeCall(), kStart - 1ns)), ErrorCode::kDeadline);
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "late"), kStart + 1ms)));
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "in time"), kStart + 2ms)));
  EXPECT_EQ(Poll(batcher, kStart + 2ms), "in time; late: deadline");
}

TEST(Batcher, ADeadlineThatCannotBeMetIsRefusedBeforeItCostsAnything) {
  const EngineLoad load{.places = 2, .idle = 0, .batch_time = 10ms};
  Batcher batcher = MakeBatcher({.max_batch = 4});
  EXPECT_EQ(Refusal(batcher, WithDeadline(FakeCall(), kStart + 9ms), kStart, load), ErrorCode::kDeadline);
  EXPECT_TRUE(Offer(batcher, WithDeadline(FakeCall(), kStart + 10ms), kStart, load));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Offer(batcher, FakeCall(4), kStart, load));
  // Two full batches wait: a round of both places, and then its own.
  EXPECT_EQ(Refusal(batcher, WithDeadline(FakeCall(), kStart + 19ms), kStart, load), ErrorCode::kDeadline);
  EXPECT_TRUE(Offer(batcher, WithDeadline(FakeCall(), kStart + 20ms), kStart, load));
}

TEST(Batcher, ACallThatWouldBeAnsweredTooLateIsNotTaken) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "a"), kStart + 10ms)));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b")));
  EXPECT_EQ(Poll(batcher, kStart + 5ms, {.places = 1, .idle = 1, .batch_time = 6ms}), "b; a: deadline");
}

TEST(Batcher, TheDefaultTimeoutAndTheRequestsOwnAreBothKept) {
  const auto expired = [](QueuePolicy policy, Instant deadline, Duration waited) {
    Batcher batcher = MakeBatcher({.max_batch = 4, .default_policy = policy});
    EXPECT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "a"), deadline)));
    return Poll(batcher, kStart + waited) == "wait; a: deadline";
  };
  for (const QueuePolicy& policy :
       {QueuePolicy{.default_timeout = 2ms}, QueuePolicy{.default_timeout = 4ms}}) {
    const Instant deadline = kStart + (policy.default_timeout == 2ms ? 4ms : 2ms);
    EXPECT_FALSE(expired(policy, deadline, 2ms));
    EXPECT_TRUE(expired(policy, deadline, 3ms));
  }
  const QueuePolicy own{.default_timeout = 4ms, .allow_override = false};
  EXPECT_FALSE(expired(own, kStart + 2ms, 4ms));
  EXPECT_TRUE(expired(own, kStart + 2ms, 5ms));
  EXPECT_FALSE(expired({.allow_override = false}, kStart + 2ms, 3600s));
}

TEST(Batcher, DelayedCallsGoBehindThoseInTimeOfTheirPriority) {
  const QueuePolicy delay{.default_timeout = 1ms, .on_timeout = QueuePolicy::OnTimeout::kDelay};
  Batcher batcher = MakeBatcher({.max_batch = 1, .priority_levels = 2, .default_policy = delay});
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "late"), kStart - 1ms)));
  ASSERT_TRUE(Offer(batcher, WithPriority(FakeCall(1, "low"), 2), kStart + 2ms));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "in time"), kStart + 2ms));
  EXPECT_EQ(Poll(batcher, kStart + 2ms), "in time");
  EXPECT_EQ(Poll(batcher, kStart + 2ms), "late");
  EXPECT_EQ(Poll(batcher, kStart + 2ms), "low");
}

TEST(Batcher, CancelledCallsLeaveBeforeTheyAreComputed) {
  Batcher batcher = MakeBatcher({.max_batch = 4});
  std::stop_source stop;
  Call call = FakeCall(1, "a");
  call.request.cancelled = stop.get_token();
  ASSERT_TRUE(Offer(batcher, std::move(call)));
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "b")));
  stop.request_stop();
  EXPECT_EQ(Poll(batcher), "b; a: cancelled");
  Call late = FakeCall();
  late.request.cancelled = stop.get_token();
  EXPECT_EQ(Refusal(batcher, std::move(late)), ErrorCode::kCancelled);
}

TEST(Batcher, CallsThatAreNeverReachedExpireAllTheSame) {
  Batcher batcher = MakeBatcher({.max_batch = 1, .priority_levels = 2});
  ASSERT_TRUE(Offer(batcher, WithDeadline(WithPriority(FakeCall(1, "low"), 2), kStart + 1ms)));
  for (const char* id : {"a", "b"}) ASSERT_TRUE(Offer(batcher, FakeCall(1, id)));
  EXPECT_EQ(Poll(batcher, kStart), "a");
  EXPECT_EQ(Poll(batcher, kStart + 10ms), "b; low: deadline");
}

TEST(Batcher, RefusesWhatExpiresWithoutBeingAskedForABatch) {
  Batcher batcher = MakeBatcher({.max_batch = 1});
  EXPECT_FALSE(batcher.next_expiry());
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "patient")));
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "late"), kStart + 3ms)));
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "early"), kStart + 1ms)));
  EXPECT_EQ(batcher.next_expiry(), kStart + 1ms);
  std::vector<Batcher::Refused> refused;
  batcher.Expire(kStart + 2ms, refused);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].call.request.id, "early");
  EXPECT_EQ(refused[0].error.code, ErrorCode::kDeadline);
  EXPECT_EQ(batcher.next_expiry(), kStart + 3ms);
  EXPECT_EQ(batcher.calls(), 2);
}

TEST(Batcher, DoesNotExpireWhatIsOnlyToBeDelayed) {
  Batcher batcher =
      MakeBatcher({.max_batch = 1, .default_policy = {.on_timeout = QueuePolicy::OnTimeout::kDelay}});
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "late"), kStart + 1ms)));
  EXPECT_FALSE(batcher.next_expiry());
  std::vector<Batcher::Refused> refused;
  batcher.Expire(kStart + 2ms, refused);
  EXPECT_TRUE(refused.empty());
  EXPECT_EQ(Poll(batcher, kStart + 2ms), "late");
}

TEST(Batcher, ACallWithADeadlineDoesNotSpendItWaitingForCompany) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .max_wait = 100ms});
  ASSERT_TRUE(Offer(batcher, WithDeadline(FakeCall(1, "a"), kStart + 10ms)));
  const EngineLoad load{.places = 1, .idle = 1, .batch_time = 2ms};
  EXPECT_EQ(Poll(batcher, kStart, load), "wait 4000us");
  EXPECT_EQ(Poll(batcher, kStart + 4ms, load), "a");
}

TEST(Batcher, APartBatchWaitsForCompanyWhileItCouldNotBeginAnyway) {
  const EngineLoad computes{.places = 2, .idle = 1, .busy_until = kStart + 2ms};
  Batcher batcher = MakeBatcher({.max_batch = 2});
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
  EXPECT_EQ(Poll(batcher, kStart, computes), "wait 2000us");
  EXPECT_EQ(Poll(batcher, kStart + 2ms, computes), "a");
  for (const char* id : {"b", "c"}) ASSERT_TRUE(Offer(batcher, FakeCall(1, id)));
  EXPECT_EQ(Poll(batcher, kStart, computes), "b c");
}

TEST(Batcher, InAHurryWaitsForNobody) {
  Batcher batcher = MakeBatcher({.max_batch = 4, .preferred = {4}, .max_wait = 500us});
  ASSERT_TRUE(Offer(batcher, FakeCall(1, "a")));
  batcher.Hurry();
  EXPECT_EQ(Poll(batcher), "a");
}

TEST(Batcher, BadOptionsAreNamed) {
  const auto message = [](Batching batching) {
    const auto batcher = Batcher::Create({.batching = std::move(batching)});
    return batcher ? std::string() : batcher.error().message;
  };
  EXPECT_NE(message({.max_batch = -1}).find("max_batch is -1"), std::string::npos);
  EXPECT_NE(message({.max_batch = 4, .preferred = {8}}).find("preferred batch of 8"), std::string::npos);
  EXPECT_NE(message({.max_batch = 4, .max_wait = -1us}).find("max_wait"), std::string::npos);
  EXPECT_NE(message({.max_batch = 4, .max_wait = Duration::max()}).find("max_wait"), std::string::npos);
  EXPECT_NE(message({.max_wait = 1us}).find("max_wait"), std::string::npos);
  EXPECT_NE(message({.priority_levels = 0}).find("priority_levels is 0"), std::string::npos);
  EXPECT_NE(message({.priority_levels = 2, .default_priority = 3}).find("default_priority is 3"),
            std::string::npos);
  EXPECT_NE(message({.priority_levels = 2, .policies = {{3, {}}}}).find("priority 3"), std::string::npos);
  EXPECT_NE(message({.default_policy = {.max_queue = -1}}).find("max_queue"), std::string::npos);
  EXPECT_NE(message({.policies = {{1, {.default_timeout = -1s}}}}).find("default_timeout"),
            std::string::npos);
  EXPECT_EQ(message({.max_batch = 4, .preferred = {4}}), "");
}

Batching RandomBatching(Random& random) {
  Batching batching{.max_batch = static_cast<int>(random.Integer(1, 9)),
                    .max_wait = Duration(500us) * random.Integer(0, 3),
                    .priority_levels = static_cast<int>(random.Integer(1, 3))};
  batching.default_priority = static_cast<int>(random.Integer(1, batching.priority_levels));
  QueuePolicy& policy = batching.default_policy;
  if (random.Integer(0, 1) == 1) {
    batching.preferred = {static_cast<int>(random.Integer(1, batching.max_batch))};
  }
  if (random.Integer(0, 1) == 1) policy.default_timeout = Duration(1ms) * random.Integer(1, 5);
  if (random.Integer(0, 1) == 1) policy.on_timeout = QueuePolicy::OnTimeout::kDelay;
  return batching;
}

// A batcher under random offers and polls, and the calls that it has not given out.
class World {
 public:
  static constexpr int kMaxQueue = 20;
  explicit World(uint64_t seed)
      : random_(seed), batching_(RandomBatching(random_)), batcher_(MakeBatcher(batching_, kMaxQueue)) {}

  void Step() {
    now_ += Duration(100us) * random_.Integer(0, 3);
    if (random_.Integer(0, 2) > 0) {
      OfferOne();
    } else {
      PollOnce();
    }
    EXPECT_EQ(batcher_.calls(), std::ssize(waiting_));
    EXPECT_LE(batcher_.calls(), kMaxQueue);
  }

  void Finish() {
    batcher_.Hurry();
    while (!batcher_.empty()) PollOnce();
    EXPECT_TRUE(waiting_.empty());
    EXPECT_EQ(batcher_.rows(), 0);
  }

 private:
  void OfferOne() {
    const std::string id = std::to_string(next_id_++);
    Call call = FakeCall(random_.Integer(1, batching_.max_batch), id, random_.Integer(1, 5) / 5 + 1);
    call.request.priority = static_cast<int>(random_.Integer(0, batching_.priority_levels));
    if (batcher_.Offer(call, kBusy, now_)) {
      waiting_.insert(id);
    } else {
      EXPECT_EQ(call.request.id, id) << "left with the caller";
    }
  }

  void PollOnce() {
    std::vector<Batcher::Refused> refused;
    const auto polled = batcher_.Poll(kIdle, now_, refused);
    for (const auto& each : refused) Leave(each.call);
    if (const auto* batch = std::get_if<Batch>(&polled)) return Check(*batch);
    const auto until = std::get<Batcher::Wait>(polled).until;
    EXPECT_EQ(until.has_value(), !batcher_.empty());
    if (until) {
      EXPECT_GT(*until, now_);
      EXPECT_LE(*until, now_ + batching_.max_wait);
    }
  }

  void Check(const Batch& batch) {
    ASSERT_FALSE(batch.calls.empty());
    int64_t rows = 0;
    int priority = 1;
    for (const Call& call : batch.calls) {
      Leave(call);
      const Request& request = call.request;
      rows += request.inputs[0].shape[0];
      EXPECT_EQ(request.inputs[0].shape[1], batch.calls[0].request.inputs[0].shape[1]);
      const int own = request.priority == 0 ? batching_.default_priority : request.priority;
      EXPECT_GE(own, priority) << "the higher priorities first";
      priority = own;
      CheckOrder(own, std::stoi(request.id));
    }
    EXPECT_EQ(rows, batch.total_rows);
    EXPECT_LE(rows, batching_.max_batch);
  }

  void CheckOrder(int priority, int id) {
    if (batching_.default_policy.on_timeout == QueuePolicy::OnTimeout::kDelay) return;
    EXPECT_GT(id, last_[priority]);
    last_[priority] = id;
  }

  void Leave(const Call& call) { EXPECT_EQ(waiting_.erase(call.request.id), 1u) << call.request.id; }

  Random random_;
  const Batching batching_;
  Batcher batcher_;
  Instant now_ = kStart;
  int next_id_ = 1;
  std::set<std::string> waiting_;
  std::map<int, int> last_;  // of each priority, the id that was computed last
};

TEST(BatcherProperty, NothingIsLostNothingComesTwiceAndEveryBatchIsOneThatMayBe) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    World world(seed);
    for (int step = 0; step < 300; ++step) world.Step();
    world.Finish();
  }
}

TEST(BatcherProperty, ALoneCallerWaitsForTheDelayAndNoLonger) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Batching batching = RandomBatching(random);
    Batcher batcher = MakeBatcher(batching);
    Instant now = kStart;
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(Offer(batcher, FakeCall(1, "lone"), now));
      std::vector<Batcher::Refused> refused;
      auto polled = batcher.Poll(kIdle, now, refused);
      if (const auto* wait = std::get_if<Batcher::Wait>(&polled)) {
        ASSERT_TRUE(wait->until);
        EXPECT_LE(*wait->until - now, batching.max_wait);
        now = *wait->until;
        polled = batcher.Poll(kIdle, now, refused);
      }
      EXPECT_TRUE(std::holds_alternative<Batch>(polled));
      now += Duration(1us) * random.Integer(0, 1000);
    }
  }
}

}  // namespace
}  // namespace weir::infer
