// Chooses the server of each call where there are several. Pure: takes the time, has no thread and no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "infer/choices.h"

namespace weir::infer {

// A server whose connection was lost is left out for a while, then gets one call on trial. One thread at a
// time.
class ServerChooser {
 public:
  static constexpr Duration kShortestRest = 100ms, kLongestRest = 5s;

  // REQUIRES: servers > 0.
  ServerChooser(Balance balance, size_t servers) : balance_(balance), servers_(servers) {}

  // Returns the server for a call, which is then under way there. `failed` is the server that failed the call
  // before: it is chosen only if there is no other. Without any server in service it chooses among all.
  size_t Choose(Instant now, std::optional<size_t> failed = std::nullopt);
  enum class End : uint8_t { kAnswered, kFailed, kLost };  // kLost: the connection, or none could be made
  // Ends a call that Choose gave to `server`.
  void Ended(size_t server, End end, Instant now);

  bool in_service(size_t server, Instant now) const { return servers_[server].rests_until <= now; }
  int64_t in_flight(size_t server) const { return servers_[server].in_flight; }

 private:
  struct Server {
    int64_t in_flight = 0;
    Instant rests_until{};
    Duration rest{};  // the last one; 0: in service
    bool on_trial = false;
  };
  bool IsBetter(size_t candidate, size_t than) const;

  const Balance balance_;
  std::vector<Server> servers_;
  size_t next_ = 0;
};

}  // namespace weir::infer
