#include "launch/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/file.h"

namespace weir::launch {

Result<int> FreePort() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), any, size) != 0 ||
      ::getsockname(socket.get(), any, &size) != 0) {
    return FailErrno("a free port", errno);
  }
  return ntohs(address.sin_port);
}

}  // namespace weir::launch
