#include "launch/process/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace weir::launch {
namespace {

struct BoundSocket {
  UniqueFd fd;
  int port = 0;
};

Result<BoundSocket> Bind() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), any, size) != 0 ||
      ::getsockname(socket.get(), any, &size) != 0) {
    return FailErrno("a free port", errno);
  }
  return BoundSocket{.fd = std::move(socket), .port = ntohs(address.sin_port)};
}

}  // namespace

// All are held until the last is found.
Result<std::vector<int>> FreePorts(int count) {
  std::vector<BoundSocket> held;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    held.push_back(TRY(Bind()));
    ports.push_back(held.back().port);
  }
  return ports;
}

}  // namespace weir::launch
