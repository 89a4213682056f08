#include "wire/tcp_acknowledged.h"

#include <linux/tcp.h>  // has the counter, and cannot be included beside <netinet/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace weir::wire {

std::optional<uint64_t> AcknowledgedBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) return std::nullopt;
  return info.tcpi_bytes_acked;
}

}  // namespace weir::wire
