#include "cluster/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/short_slice.h"
#include "base/text.h"
#include "base/thread.h"
#include "cluster/protocol.h"
#include "cluster/roster.h"
#include "cluster/turns.h"

namespace weir::cluster {
namespace {

constexpr Duration kWelcomeTimeout = 10s;  // rank 0 answers a hello at once
constexpr size_t kMostWords = 2000;        // of an error that is told
constexpr Duration kLook = 100ms;

class AgentSession final : public CallContext {
 public:
  // After the welcome, which `turns` has taken.
  AgentSession(Connection& connection, const word::Welcome& place, AgentTurns turns, const Clock& clock)
      : connection_(connection),
        rank_(place.rank),
        world_(place.world),
        clock_(clock),
        turns_(std::move(turns)) {}

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::stop_token stop() const override { return call_stop_.get_token(); }
  int connection() const override { return connection_.fd(); }

  void OnStep(std::function<void(const PassedStep& step)> passed) override {
    {
      const MutexLock lock(mutex_);
      turns_.EndSteps();
    }
    const MutexLock lock(passed_mutex_);
    passed_ = std::move(passed);
  }

  Status Arrive(int64_t step, bool last) override {
    {
      const MutexLock lock(mutex_);
      turns_.Arrive(step, clock_.Now());
    }
    return connection_.Send(word::Arrive{.step = step, .last = last});
  }

  Status Serve(Verbs verbs, const std::stop_token& stop) {
    const std::jthread reader = StartThread("agent-read", [this](const std::stop_token&) { Read(); });
    const std::jthread beat = StartThread("agent-beat", [this](const std::stop_token& over) { Beat(over); });
    const Status served = Work(verbs, stop);
    connection_.Close();
    return served;
  }

 private:
  Status Work(Verbs& verbs, const std::stop_token& stop) {
    while (true) {
      std::optional<word::Call> call = TRY(NextCall(stop));
      if (!call) return {};
      const int64_t id = call->id;
      Result<Message> answer = Run(verbs, *std::move(call));
      OnStep({});
      {
        const MutexLock lock(mutex_);
        call_stop_ = std::stop_source();
        turns_.EndCall();
      }
      TRY_STATUS(connection_.Send(AnswerTo(id, std::move(answer))));
    }
  }

  static Word AnswerTo(int64_t id, Result<Message> answer) {
    if (answer) return word::Answer{.id = id, .payload = *std::move(answer)};
    return word::Fault{.id = id,
                       .code = answer.error().code,
                       .message = CutMiddle(EscapeBytes(answer.error().message), kMostWords)};
  }

  Result<Message> Run(Verbs& verbs, word::Call call) {
    const auto handler = verbs.find(call.verb);
    if (handler == verbs.end())
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("this agent has no verb {}: install one weir on all hosts", Quoted(call.verb)));
    return handler->second(call.payload, *this);
  }

  // Returns nullopt after a goodbye.
  Result<std::optional<word::Call>> NextCall(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    while (!call_) {
      if (bye_) return std::nullopt;
      if (ended_) return std::unexpected(*ended_);
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the agent was stopped");
      changed_.WaitUntil(mutex_, clock_.Now() + kLook);
    }
    return std::exchange(call_, std::nullopt);
  }

  void Read() {
    WantShortSlice();  // the steps of all hosts wait for this thread
    while (true) {
      auto word = connection_.Receive(clock_.Now() + kPatience);
      const Instant now = clock_.Now();
      if (!word) return End(word.error());
      if (!*word)
        return End({ErrorCode::kIo, fmt::format("no sign of rank 0 for {:g} s", Seconds(kPatience))});
      const auto goes_on = Take(**std::move(word), now);
      if (!goes_on) return End({goes_on.error().code, "rank 0: " + goes_on.error().message});
      if (!*goes_on) return;
    }
  }

  // Returns false after a goodbye.
  Result<bool> Take(Word word, Instant now) {
    AgentTurns::Turn turn;
    {
      const MutexLock lock(mutex_);
      turn = TRY(turns_.Take(std::move(word), now));
      if (auto* call = std::get_if<word::Call>(&turn)) call_ = std::move(*call);
      if (std::holds_alternative<word::Stop>(turn)) call_stop_.request_stop();
      bye_ = std::holds_alternative<word::Bye>(turn);
      changed_.NotifyAll();
      if (bye_) return false;
    }
    if (const auto* pong = std::get_if<word::Pong>(&turn)) TRY_STATUS(connection_.Send(*pong));
    if (const auto* step = std::get_if<PassedStep>(&turn)) {
      const MutexLock lock(passed_mutex_);
      if (passed_) passed_(*step);
    }
    return true;
  }

  void End(Error why) {
    const MutexLock lock(mutex_);
    ended_ = std::move(why);
    call_stop_.request_stop();
    changed_.NotifyAll();
  }

  void Beat(const std::stop_token& over) {
    Instant next = clock_.Now();
    while (!over.stop_requested()) {
      if (clock_.Now() >= next) {
        if (!connection_.Send(word::Beat())) return;
        next += kHeartbeat;
      }
      SleepUntil(std::min(next, clock_.Now() + kLook));
    }
  }

  Connection& connection_;
  const int rank_, world_;
  const Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  AgentTurns turns_ GUARDED_BY(mutex_);
  std::optional<word::Call> call_ GUARDED_BY(mutex_);  // that is not begun
  std::optional<Error> ended_ GUARDED_BY(mutex_);
  bool bye_ GUARDED_BY(mutex_) = false;
  std::stop_source call_stop_;  // replaced between two calls, by their thread
  Mutex passed_mutex_;          // held while passed_ is called
  std::function<void(const PassedStep& step)> passed_ GUARDED_BY(passed_mutex_);
};

// Waits for the place that rank 0 gives. kInvalidArgument with its words where it gives none.
Result<word::Welcome> AwaitWelcome(Connection& connection, AgentTurns& turns, const Clock& clock,
                                   const std::stop_token& stop) {
  const Instant until = clock.Now() + kWelcomeTimeout;
  while (true) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the agent was stopped");
    auto word = TRY(connection.Receive(std::min(until, clock.Now() + kLook)));
    if (!word && clock.Now() >= until) return Fail(ErrorCode::kDeadline, "rank 0 does not answer");
    if (!word) continue;
    const auto turn = TRY_CONTEXT(turns.Take(*std::move(word), clock.Now()), "rank 0");
    if (const auto* welcome = std::get_if<word::Welcome>(&turn)) return *welcome;
    const auto* refuse = std::get_if<word::Refuse>(&turn);
    return Fail(ErrorCode::kInvalidArgument,
                "rank 0 refuses this agent: " + CutMiddle(refuse == nullptr ? "" : refuse->why, kMostWords));
  }
}

}  // namespace

Status CheckBegin(Instant begin, Instant now) {
  constexpr Duration kMostAhead = 60s;
  if (begin <= now + kMostAhead) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a run that begins in more than {:g} s: rank 0 does not know this host's clock",
                          Seconds(kMostAhead)));
}

Status ServeSession(Connection& connection, const AgentOptions& options,
                    const std::function<Verbs()>& make_verbs, const Clock& clock,
                    const std::stop_token& stop) {
  TRY_STATUS(connection.Send(word::Hello{.name = EscapeBytes(options.name),
                                         .build = EscapeBytes(options.build),
                                         .rank = options.rank,
                                         .world = options.world}));
  AgentTurns turns(options.rank, options.world);
  const word::Welcome place = TRY(AwaitWelcome(connection, turns, clock, stop));
  connection.AllowLargeMessages();
  AgentSession session(connection, place, std::move(turns), clock);
  return session.Serve(make_verbs(), stop);
}

}  // namespace weir::cluster
