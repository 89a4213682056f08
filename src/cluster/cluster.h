// Rank 0's side: the agents of a run, their clocks, their calls and their barrier.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "cluster/clock_offset.h"
#include "cluster/connection.h"
#include "cluster/message.h"
#include "cluster/roster.h"
#include "cluster/socket.h"
#include "cluster/turns.h"

namespace weir::cluster {

struct Host {
  std::string name;
  std::string build;                 // of its weir
  std::optional<ClockOffset> clock;  // against this host's
  std::optional<std::string> lost;   // why; nullopt: it is there
};

// Calls go to all agents at once. One thread at a time. Threads: "cluster-N" takes the messages of rank N,
// "cluster-beat" sends heartbeats and looks for hosts that are silent.
class Cluster {
 public:
  explicit Cluster(int world, const Clock& clock);
  ~Cluster();  // says goodbye

  // Takes a connection whose agent says hello; `name` replaces the agent's own name if it is not empty.
  // kInvalidArgument where the agent is refused.
  Status Add(std::unique_ptr<Connection> connection, const std::string& name, std::optional<int> rank,
             Instant until);
  // Lets others take the ranks of those that were lost. Before the first call.
  void FreeLost() EXCLUDES(mutex_);
  bool complete() const EXCLUDES(mutex_);
  std::vector<int> Missing() const EXCLUDES(mutex_);

  // `told` is called once, on the thread of the next CallAll, as soon as a host is lost: with LostText.
  void OnLoss(std::function<void(const std::string& lost)> told) { on_loss_ = std::move(told); }

  // Finds each host's clock offset by 64 round trips. kIo names a lost host; one that answers no ping within
  // kPatience is.
  Status Synchronise() EXCLUDES(mutex_);

  // Sends a request to each rank, and blocks until each has answered or is lost. A stop, and the loss of a
  // host, ask the others to end early; who does not within the grace is lost too. Lost hosts are kIo.
  std::vector<Result<Message>> CallAll(const std::string& verb, std::vector<Message> requests,
                                       const std::stop_token& stop) EXCLUDES(mutex_);
  // The same request for all. The first fault is the error, with the host's name.
  Result<std::vector<Message>> CallAll(const std::string& verb, const Message& request,
                                       const std::stop_token& stop) EXCLUDES(mutex_);

  int world() const { return world_; }
  std::vector<Host> hosts() const EXCLUDES(mutex_);
  std::string LostText() const EXCLUDES(mutex_);  // empty: none is lost

 private:
  struct Agent {
    std::shared_ptr<Connection> connection;
    std::string build;
    std::optional<ClockOffset> clock;
    RankTurns turns;
    std::optional<Result<Message>> answer;            // of the call under way
    std::optional<std::pair<Instant, Instant>> pong;  // there, received here
  };

  void Read(int rank) EXCLUDES(mutex_);
  Status Take(int rank, Word word, Instant now) EXCLUDES(mutex_);
  void Tell(const StepBarrier::Release& release, int last) EXCLUDES(mutex_);
  void Lose(int rank, const std::string& why) EXCLUDES(mutex_);
  void LoseLocked(int rank, const std::string& why) REQUIRES(mutex_);
  void Beat(const std::stop_token& over) EXCLUDES(mutex_);
  void TellAll(const Word& word) EXCLUDES(mutex_);
  std::vector<std::shared_ptr<Connection>> Live() EXCLUDES(mutex_);
  Result<ClockOffset> FindOffset(int rank) EXCLUDES(mutex_);
  bool Await(const std::stop_token& stop) EXCLUDES(mutex_);

  const int world_;
  const Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  Roster roster_ GUARDED_BY(mutex_);
  StepBarrier barrier_ GUARDED_BY(mutex_);
  std::deque<Agent> agents_;  // by rank; each entry's fields beside `connection` are guarded by mutex_
  bool closing_ GUARDED_BY(mutex_) = false;
  int64_t next_id_ GUARDED_BY(mutex_) = 0;

  std::function<void(const std::string& lost)> on_loss_;  // empty after it was called
  std::vector<std::jthread> readers_;                     // by rank, of those that have joined
  std::jthread beat_;
};

// A line for each host: its rank, its name and how well its clock is known.
std::string HostsText(const std::vector<Host>& hosts);

// Connects to agents that listen, in the order of their ranks. kIo names the one that cannot be reached.
Result<std::unique_ptr<Cluster>> ConnectAgents(const std::vector<Address>& hosts, const std::string& token,
                                               Duration timeout, const Clock& clock,
                                               const std::stop_token& stop);
// Listens until `world` agents have come; their handshakes go on side by side. kDeadline names the ranks that
// are missing.
Result<std::unique_ptr<Cluster>> GatherAgents(const Address& listen, int world, const std::string& token,
                                              Duration timeout, const Clock& clock,
                                              const std::stop_token& stop);

// Returns the token of agents at `address`: `given`, or where that is empty and the address is this machine's
// alone, UserToken. kInvalidArgument for another address without a token.
Result<std::string> TokenFor(const Address& address, const std::string& given);

}  // namespace weir::cluster
