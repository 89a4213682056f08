// TCP as a client needs it.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "http/server_url.h"

namespace weir::http {

struct TcpAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// Where the server is, in the order to try; at least one. Blocks for as long as the system's resolver takes,
// unless the server's host is literal(). kIo with the resolver's words alone.
Result<std::vector<TcpAddress>> Resolve(const ServerUrl& server);

// A socket that does not block and sends without delay, on its way: once it can be written to or has failed,
// ConnectOutcome tells which. kIo with the system's words alone.
Result<UniqueFd> BeginConnect(const TcpAddress& to);
Status ConnectOutcome(int fd);

// The time that an attempt has, when `left` is left for it and for the `after` addresses behind it.
Duration Patience(Duration left, size_t after);

// A socket as of BeginConnect that is connected to the first of the server's addresses that answers. Blocks;
// gives up at `until` (kDeadline). Otherwise the error is that of the last address, without the server's
// name.
Result<UniqueFd> Connect(const ServerUrl& server, Instant until, const Clock& clock);

// Bytes that the other side's kernel has acknowledged on this socket since it was opened, the opening itself
// included; also after a reset. Nothing where the kernel does not tell.
std::optional<uint64_t> AcknowledgedBytes(int fd);

// Bytes that this side's kernel has received, and those that the other side's has acknowledged, since the
// socket was opened. nullopt where the kernel does not tell.
struct ByteCounts {
  uint64_t received = 0, acknowledged = 0;
};
std::optional<ByteCounts> CountBytes(int fd);

}  // namespace weir::http
