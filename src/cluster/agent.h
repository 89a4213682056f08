// One host's part: answers the calls of rank 0, and nothing but the verbs it was given.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/connection.h"
#include "cluster/message.h"

namespace weir::cluster {

// A step that every rank has come to.
struct PassedStep {
  int64_t step = 0;
  Instant at;         // on this host's clock
  bool last = false;  // some rank wants no step after it
  Duration cost{};    // of the two messages: from the arrival to `at`, without the wait for the last rank
};

// The surroundings of a call. Its thread alone may use it, but for Arrive.
class CallContext {
 public:
  virtual ~CallContext() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  // Rank 0 asks the call to end early, or is gone.
  virtual std::stop_token stop() const = 0;
  virtual int connection() const = 0;  // the socket to rank 0
  // Begins a run of steps: `passed` is called for each step that every rank has come to, in order, on the
  // thread that takes messages. An empty one ends the run; after that call none is under way.
  virtual void OnStep(std::function<void(const PassedStep& step)> passed) = 0;
  // Any thread. Says that this rank has come to its next step, from 0 on. `last`: it wants no step after it.
  // kIo if rank 0 is gone.
  virtual Status Arrive(int64_t step, bool last) = 0;
};

// Answers one call. State that calls share lives as long as the session does.
using Handler = std::move_only_function<Result<Message>(const Message& request, CallContext& context)>;
using Verbs = std::map<std::string, Handler>;

// kInvalidArgument unless a run that rank 0 wants to begin then can: not long after `now`, the end of a wait
// that nothing else ends.
Status CheckBegin(Instant begin, Instant now);

struct AgentOptions {
  std::string name;         // of this host
  std::string build;        // of this program
  std::optional<int> rank;  // by the launcher
  int world = 0;            // 0: not known
};

// Serves rank 0 at the other end until it says goodbye. Blocks. Threads: "agent-read" takes messages,
// "agent-beat" sends heartbeats; calls run on the caller's. kIo if the connection is lost or falls silent;
// kInvalidArgument with the words of rank 0 if it refuses; kCancelled after `stop`.
Status ServeSession(Connection& connection, const AgentOptions& options,
                    const std::function<Verbs()>& make_verbs, const Clock& clock,
                    const std::stop_token& stop);

}  // namespace weir::cluster
