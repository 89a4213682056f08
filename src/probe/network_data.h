// The data connections of a network probe: plain TCP beside the agent's own connection, which carries the
// calls. Each begins with the cookie that the agent gave, so nobody else is served.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "cluster/agent.h"
#include "cluster/socket.h"
#include "stats/histogram.h"

namespace weir::probe {

inline constexpr char kNetworkOpen[] = "network.open", kNetworkTake[] = "network.take";
constexpr size_t kCookieBytes = 16;
constexpr size_t kAnswerBytes = 4;
constexpr uint64_t kMostNetworkBytes = uint64_t{1} << 30;  // of a message
constexpr int kMostStreams = 256;                          // at once

// The use of one data connection by one of its ends.
struct StreamUse {
  uint64_t bytes = 0;  // of a stretch: after the time left out
  Duration time{};     // of these
  Duration cpu{};      // of the thread, for all bytes
  Duration wall{};     // of the thread
  uint64_t all_bytes = 0;
  int64_t retransmits = 0;  // known to the sender
};
Json StreamsToJson(const std::vector<StreamUse>& streams);
// kCorrupt names the key.
Result<std::vector<StreamUse>> StreamsFromJson(const Json& json);

// Where an agent takes data connections: a port of its host, and the secret that each begins with.
struct DataPort {
  uint16_t port = 0;
  std::string cookie;

  Json ToJson() const;
  static Result<DataPort> FromJson(const Json& json);  // kCorrupt names the key
};

// The agent's end: takes streams of bytes, and answers messages. Threads: "net-accept" waits for cookies;
// "net-N", one a connection that has one, kMostStreams at most.
class NetworkAgent {
 public:
  explicit NetworkAgent(const Clock& clock);
  ~NetworkAgent();

  // Listens at the address of the agent's own connection. The answer names port and cookie.
  Result<cluster::Message> Open(cluster::CallContext& context);
  // Waits until all connections have ended, and returns what they used since the last call.
  Result<cluster::Message> Take(cluster::CallContext& context);

 private:
  struct Waiting;
  struct Stream;

  void AcceptAll(const std::stop_token& over);
  void AcceptNew(std::deque<Waiting>& waiting);
  void TakeCookies(std::deque<Waiting>& waiting);
  void Begin(UniqueFd fd, uint64_t message_bytes);
  void Serve(Stream& stream, uint64_t message_bytes);
  Result<StreamUse> ServeStream(int fd);
  Result<StreamUse> ServeMessages(int fd, uint64_t bytes);

  const Clock& clock_;
  UniqueFd socket_;
  std::string cookie_;
  Mutex mutex_;
  CondVar changed_;
  int running_ GUARDED_BY(mutex_) = 0;
  std::vector<StreamUse> ended_ GUARDED_BY(mutex_);
  std::vector<std::string> faults_ GUARDED_BY(mutex_);
  std::list<Stream> streams_;  // of the accepting thread
  int64_t begun_ = 0;          // streams
  std::jthread accept_;
};

// The caller's end. Each opens one connection to `address`, and blocks.
struct DataAddress {
  cluster::Address address;
  std::string cookie;
};
// Sends messages of so many bytes until `until`, then waits until the agent has taken them.
Result<StreamUse> SendStream(const DataAddress& to, uint64_t message_bytes, Instant until, const Clock& clock,
                             const std::stop_token& stop);
// Sends a message and waits for its answer, again and again until `until`; at least `fewest` times. Adds the
// times in nanoseconds, after some that are left out.
Result<StreamUse> SendMessages(const DataAddress& to, uint64_t message_bytes, Instant until, int fewest,
                               stats::Histogram& latency_ns, const Clock& clock, const std::stop_token& stop);

// Time at the begin of a stretch that is left out: until the window has opened.
constexpr Duration kOmitted = 300ms;

}  // namespace weir::probe
