// The agents that a run asks for: called where they listen, started here or by ssh, or awaited at a
// rendezvous.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "launch/process/spawn.h"
#include "launch/process/tail.h"

namespace weir::cluster {

struct JoinOptions {
  // A list: HOST:PORT of agents that listen; or user@host, which ssh reaches, and "local", a process of this
  // machine.
  std::string hosts;
  std::string rendezvous;  // HOST:PORT here, where `agents` agents come
  int agents = 0;
  std::string token_file;
  std::string program = "weir";  // on hosts that ssh reaches
  double timeout_s = 60;         // for all agents to be there

  bool any() const { return !hosts.empty() || !rendezvous.empty(); }
};

// An agent that this process starts. It ends with this object and with this process.
class StartedAgent {
 public:
  // Blocks until it listens. `place`: "local", or a destination of ssh. kIo with ssh's or its last words.
  static Result<std::unique_ptr<StartedAgent>> Start(const std::string& place, const std::string& program,
                                                     const std::string& token, Instant until,
                                                     const Clock& clock);
  const Address& address() const { return address_; }

 private:
  StartedAgent(launch::Child child, UniqueFd input, std::unique_ptr<launch::Tail> words)
      : words_(std::move(words)), child_(std::move(child)), input_(std::move(input)) {}

  const std::unique_ptr<launch::Tail> words_;
  launch::Child child_;
  UniqueFd input_;  // its end ends the agent
  Address address_;
};

// The agents of one run. One thread at a time.
struct JoinedAgents {
  std::deque<std::unique_ptr<StartedAgent>> started;
  std::unique_ptr<Cluster> cluster;  // says goodbye before those that were started end
};

// kInvalidArgument names options that do not fit together.
Status CheckJoin(const JoinOptions& options);
Result<JoinedAgents> JoinAgents(const JoinOptions& options, const Clock& clock, const std::stop_token& stop);

}  // namespace weir::cluster
