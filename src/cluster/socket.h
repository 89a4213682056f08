// TCP sockets of agents: where they listen, and whom they call.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// Returns the next connection; an invalid one if `until` came first. kOverloaded if descriptors or memory are
// used up.
Result<UniqueFd> Accept(int fd, Instant until, const Clock& clock);
// A connection that blocks and sends without delay. Tries again until `until` where nobody listens yet.
Result<UniqueFd> Connect(const Address& address, Instant until, const Clock& clock);

// Waits until `fd` is ready for `events`, or failed. False if `until` came first.
bool WaitFor(int fd, short events, Instant until, const Clock& clock);
// The same for any of them; `revents` tells which.
void WaitForAny(std::vector<pollfd>& waited, Instant until, const Clock& clock);
// Returns what has come, without waiting: nothing if that is nothing. kIo "closed the connection" at its end.
Result<std::string> ReceiveNow(int fd);
// Returns how many bytes the socket took without waiting.
Result<size_t> SendNow(int fd, std::string_view bytes);

}  // namespace weir::cluster
