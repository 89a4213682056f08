// TCP sockets of agents: where they listen, and whom they call.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace weir::cluster {

struct Address {
  std::string host;  // a name, an IPv4, or an IPv6 without its brackets
  uint16_t port = 0;

  std::string ToString() const;  // "HOST:PORT", an IPv6 in brackets
  bool operator==(const Address&) const = default;
};

// Parses "HOST:PORT". kInvalidArgument.
Result<Address> ParseAddress(const std::string& text);

// Whether `host` is 127.0.0.0/8, ::1 or "localhost".
bool IsLoopback(const std::string& host);

// A socket that waits for connections. Port 0: one that is free; PortOf tells it. kIo names the address and
// the remedy.
Result<UniqueFd> Listen(const Address& address);
Result<uint16_t> PortOf(int fd);
// The address at this end or the other, "10.0.0.1".
Result<std::string> HostOf(int fd, bool other_end);

// Returns the next connection; an invalid one if `until` came first.
Result<UniqueFd> Accept(int fd, Instant until, const Clock& clock);
// A connection that blocks and sends without delay. Tries again until `until` where nobody listens yet.
Result<UniqueFd> Connect(const Address& address, Instant until, const Clock& clock);

}  // namespace weir::cluster
