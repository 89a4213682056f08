// The order of words between rank 0 and an agent: what the other end may say now, and what follows from it.
// Pure: whatever comes, in whatever order, is a turn or kCorrupt, after which the session is over. One thread
// at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/agent.h"
#include "cluster/protocol.h"

namespace weir::cluster {

// An agent's side: words of rank 0.
class AgentTurns {
 public:
  // As its launcher started it: the rank it wants, and the number of agents (0: not known).
  AgentTurns(std::optional<int> rank, int world) : rank_(rank), world_(world) {}

  // Nothing to be done; the word itself; the answer to a ping; or the step that it released.
  using Turn = std::variant<std::monostate, word::Welcome, word::Refuse, word::Pong, word::Call, word::Stop,
                            PassedStep, word::Bye>;
  Result<Turn> Take(Word word, Instant now);

  // This rank came to a step, and says so.
  void Arrive(int64_t step, Instant now) { arrivals_.push_back({step, now}); }
  // No step of this run is awaited any more; releases of it may still be on their way.
  void EndSteps();
  // The call is answered: the next one may come.
  void EndCall() { called_ = false; }
  // A call is under way, or waits to be taken.
  bool called() const { return called_; }

 private:
  Result<Turn> TakeRelease(const word::Release& release, Instant now);

  struct Arrival {
    int64_t step = 0;
    Instant at;
  };
  const std::optional<int> rank_;
  const int world_;
  bool welcomed_ = false, called_ = false, over_ = false;
  std::optional<int64_t> last_id_;  // of a call
  std::deque<Arrival> arrivals_;    // of this run that are not released
  int64_t past_ = 0;                // arrivals of earlier runs that were not released
};

// Rank 0's side: words of one agent.
class RankTurns {
 public:
  using Turn = std::variant<std::monostate, word::Hello, word::Pong, word::Answer, word::Fault, word::Arrive>;
  Result<Turn> Take(Word word);

  // Returns the number of a new ping.
  int64_t Ping() { return ++pinged_; }
  void Call(int64_t id) { called_ = id; }
  // The agent is lost: nothing more is awaited of it.
  void Forget() { called_.reset(); }
  // A call is not answered yet.
  bool called() const { return called_.has_value(); }

 private:
  bool greeted_ = false;
  int64_t pinged_ = 0, ponged_ = 0;  // the last ones
  std::optional<int64_t> called_;
};

}  // namespace weir::cluster
