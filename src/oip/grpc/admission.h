// Which connections a gRPC server takes and which it closes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace weir::oip {

// Why a connection or a message was turned away.
enum class GrpcRefusal {
  kConnections,  // the server has as many connections as it may have
  kAddress,      // the client's address has
  kDescriptors,  // the process may open no more files
  kSilent,       // closed to make room: it has sent no request
  kStalled,      // closed: a message made no progress
  kSlow,         // closed: a message took too long
  kBytes,        // closed: unfinished messages took too much memory, and this connection had most of them
  kResets,       // closed: it began and dropped calls faster than the library can take them
  kCalls,    // closed: all calls together take too much memory, and this connection had more than its share
  kMessage,  // a message was refused: the messages in flight take too much memory
};
inline constexpr int kGrpcRefusals = 10;
std::string_view ToString(GrpcRefusal refusal);     // "connections", "address", ... for a metric's label
std::string_view Explanation(GrpcRefusal refusal);  // what it means and what to do, for a log
bool IsClosing(GrpcRefusal refusal);                // of a connection that had been admitted

// Admits connections and watches how they use memory. Pure policy: no sockets, no clock, no threads; the
// caller passes `now`. Not thread-safe.
//
// The library does not tell how many bytes of unfinished messages it holds. The policy works them out: bytes
// that the kernel received, less the messages that were completed, less an allowance for framing, headers and
// control frames. The allowance is generous, so the figure errs on the low side.
class GrpcAdmission {
 public:
  struct Options {
    int max_connections = 1024;
    int max_per_address = 0;                   // 0: three quarters of max_connections, at least 1
    size_t max_bytes = size_t{1} << 30;        // of unfinished messages, all connections together
    Duration message_timeout = 30s;            // without progress; ten times as long in all
    uint64_t least_rate = uint64_t{16} << 10;  // bytes per second that count as progress
    Duration silence = 1s;  // a connection without a request may be closed for another after so long
  };
  using Id = uint64_t;

  // Totals of a connection since it was opened.
  struct Traffic {
    uint64_t received = 0;       // bytes, by the kernel
    uint64_t sent = 0;           // bytes that the client has acknowledged
    uint64_t messages = 0;       // completed
    uint64_t message_bytes = 0;  // of these
  };
  struct Closing {
    Id id = 0;
    GrpcRefusal reason{};
    bool operator==(const Closing&) const = default;
  };
  struct Decision {
    std::optional<GrpcRefusal> refused;  // none: the connection is admitted
    std::optional<Closing> instead;      // must be closed to make room
  };

  explicit GrpcAdmission(Options options);

  // Decides on a new connection. `id` must be new.
  Decision Offer(Id id, std::string_view address, Instant now);
  // Names a connection to close so that there are descriptors again; nullopt if every one is in use.
  std::optional<Closing> MakeRoom(Instant now);
  void Remove(Id id);

  void Observe(Id id, const Traffic& traffic, Instant now);
  // Forgets the unfinished bytes of a connection: it is known to have no unfinished message.
  void Clear(Id id, Instant now);
  // Connections that may soon be closed for their unfinished messages.
  std::vector<Id> Suspects(Instant now) const;
  // Returns the connections to close now. Each is named once; Remove() must follow.
  std::vector<Closing> Poll(Instant now);

  size_t size() const { return connections_.size(); }
  // Another connection may be refused, or one closed for it: what was observed should be recent.
  bool crowded() const;
  uint64_t unfinished_bytes() const { return unfinished_; }
  uint64_t UnfinishedOf(Id id) const;

 private:
  static constexpr int kParts = 3;  // of the timeout; progress is judged in each

  // The time since which a connection has had unfinished messages.
  struct Wait {
    Instant since{};
    uint64_t most = 0;           // unfinished bytes, at their most
    uint64_t message_bytes = 0;  // completed before it began
    Instant part_since{};
    uint64_t part_received = 0;
    int idle_parts = 0;  // one after the other, up to the last
  };
  struct Connection {
    std::string address;
    Instant admitted{};
    Traffic traffic;
    Instant observed{};
    uint64_t explained = 0;  // of the received bytes
    uint64_t unfinished = 0;
    std::optional<Wait> wait;
    bool closing = false;
  };

  std::optional<Closing> CloseSilent(std::optional<std::string_view> address, Instant now);
  Wait BeginWait(const Connection& connection, Instant now) const;
  void SetUnfinished(Connection& connection, uint64_t bytes);
  void UpdateWait(Connection& connection, Instant now) const;

  const Options options_;
  std::map<Id, Connection> connections_;  // in the order of their arrival
  std::map<std::string, int, std::less<>> of_address_;
  uint64_t unfinished_ = 0;
};

}  // namespace weir::oip
