#include "cluster/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/short_slice.h"
#include "base/thread.h"
#include "cluster/protocol.h"
#include "cluster/roster.h"

namespace weir::cluster {
namespace {

constexpr Duration kWelcomeTimeout = 600s;  // the others may come late
constexpr Duration kLook = 100ms;

class AgentSession final : public CallContext {
 public:
  AgentSession(Connection& connection, int rank, int world, const Clock& clock)
      : connection_(connection), rank_(rank), world_(world), clock_(clock) {}

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::stop_token stop() const override { return call_stop_.get_token(); }
  int connection() const override { return connection_.fd(); }

  void OnStep(std::function<void(const PassedStep& step)> passed) override {
    {
      const MutexLock lock(mutex_);
      arrivals_.clear();
    }
    const MutexLock lock(passed_mutex_);
    passed_ = std::move(passed);
  }

  Status Arrive(int64_t step, bool last) override {
    {
      const MutexLock lock(mutex_);
      arrivals_.push_back({step, clock_.Now()});
    }
    return connection_.Send(MakeMessage(kArrive, {{"step", step}, {"last", last}}));
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
      std::optional<Message> call = TRY(NextCall(stop));
      if (!call) return {};
      const int64_t id = GetInteger(call->body, "id").value_or(-1);
      const std::string verb = GetString(call->body, "verb").value_or("");
      Result<Message> answer = Run(verbs, verb, *call);
      OnStep({});
      {
        const MutexLock lock(mutex_);
        call_stop_ = std::stop_source();
        running_ = stopping_ = false;
      }
      if (answer) {
        Message message = MakeMessage(kAnswer, {{"id", id}, {"body", std::move(answer->body)}});
        message.block = std::move(answer->block);
        TRY_STATUS(connection_.Send(message));
      } else {
        TRY_STATUS(connection_.Send(MakeFault(id, answer.error())));
      }
    }
  }

  Result<Message> Run(Verbs& verbs, const std::string& verb, const Message& call) {
    const auto handler = verbs.find(verb);
    if (handler == verbs.end())
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("this agent has no verb \"{}\": install one weir on all hosts", EscapeBytes(verb)));
    const auto body = call.body.find("body");
    const Message request{.body = body == call.body.end() ? Json::object() : *body, .block = call.block};
    return handler->second(request, *this);
  }

  // Returns nullopt after a goodbye.
  Result<std::optional<Message>> NextCall(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    while (calls_.empty()) {
      if (bye_) return std::nullopt;
      if (ended_) return std::unexpected(*ended_);
      if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the agent was stopped");
      changed_.WaitUntil(mutex_, clock_.Now() + kLook);
    }
    Message call = std::move(calls_.front());
    calls_.pop_front();
    running_ = true;
    return call;
  }

  void Read() {
    WantShortSlice();  // the steps of all hosts wait for this thread
    while (true) {
      auto message = connection_.Receive(clock_.Now() + kPatience);
      const Instant now = clock_.Now();
      if (!message) return End(message.error());
      if (!*message)
        return End({ErrorCode::kIo, fmt::format("no sign of rank 0 for {:g} s", Seconds(kPatience))});
      if (!Take(**std::move(message), now)) return;
    }
  }

  // Returns false after a goodbye.
  bool Take(Message message, Instant now) {
    const std::string kind = KindOf(message);
    if (kind == kPing) {
      (void)connection_.Send(MakeMessage(
          kPong, {{"n", GetInteger(message.body, "n").value_or(0)}, {"at", now.time_since_epoch().count()}}));
      return true;
    }
    if (kind == kRelease) {
      Pass(message, now);
      return true;
    }
    const MutexLock lock(mutex_);
    if (kind == kCall) {
      calls_.push_back(std::move(message));
    } else if (kind == kStop && (running_ || !calls_.empty())) {
      stopping_ = true;
      call_stop_.request_stop();
    } else if (kind == kBye) {
      bye_ = true;
    }
    changed_.NotifyAll();
    return !bye_;
  }

  void Pass(const Message& message, Instant now) {
    PassedStep passed{.step = GetInteger(message.body, "step").value_or(-1),
                      .at = now,
                      .last = message.body.value("last", false)};
    {
      const MutexLock lock(mutex_);
      if (arrivals_.empty() || arrivals_.front().step != passed.step) return;  // of a run that has ended
      const Duration waited(GetInteger(message.body, "waited_ns").value_or(0));
      passed.cost = std::max(Duration{}, now - arrivals_.front().at - waited);
      arrivals_.pop_front();
    }
    const MutexLock lock(passed_mutex_);
    if (passed_) passed_(passed);
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
        if (!connection_.Send(MakeMessage(kBeat))) return;
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
  std::deque<Message> calls_ GUARDED_BY(mutex_);
  struct Arrival {
    int64_t step = 0;
    Instant at;
  };
  std::deque<Arrival> arrivals_ GUARDED_BY(mutex_);  // that are not released
  std::optional<Error> ended_ GUARDED_BY(mutex_);
  bool bye_ GUARDED_BY(mutex_) = false;
  bool running_ GUARDED_BY(mutex_) = false;   // a call
  bool stopping_ GUARDED_BY(mutex_) = false;  // it was asked to end
  std::stop_source call_stop_;
  Mutex passed_mutex_;  // held while passed_ is called
  std::function<void(const PassedStep& step)> passed_ GUARDED_BY(passed_mutex_);
};

}  // namespace

Status ServeSession(Connection& connection, const AgentOptions& options,
                    const std::function<Verbs()>& make_verbs, const Clock& clock,
                    const std::stop_token& stop) {
  Json hello{{"name", options.name}, {"build", options.build}, {"world", options.world}};
  PutIfAny(hello, "rank", options.rank);
  TRY_STATUS(connection.Send(MakeMessage(kHello, std::move(hello))));
  const Instant until = clock.Now() + kWelcomeTimeout;
  while (true) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "the agent was stopped");
    const auto welcome = TRY(connection.Receive(std::min(until, clock.Now() + kLook)));
    if (!welcome && clock.Now() >= until) return Fail(ErrorCode::kDeadline, "rank 0 does not answer");
    if (!welcome) continue;
    const std::string kind = KindOf(*welcome);
    if (kind == kRefuse)
      return Fail(
          ErrorCode::kInvalidArgument,
          "rank 0 refuses this agent: " + GetString(welcome->body, "why").value_or("it says not why"));
    if (kind != kWelcome) continue;
    const int64_t rank = TRY(GetInteger(welcome->body, "rank")),
                  world = TRY(GetInteger(welcome->body, "world"));
    AgentSession session(connection, static_cast<int>(rank), static_cast<int>(world), clock);
    return session.Serve(make_verbs(), stop);
  }
}

}  // namespace weir::cluster
