#include "http/tcp.h"

#include <fmt/format.h>
#include <linux/tcp.h>  // has the counter, and cannot be included beside <netinet/tcp.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <system_error>

namespace weir::http {
namespace {

std::unexpected<Error> Failed(int error) {
  return Fail(ErrorCode::kIo, std::generic_category().message(error));
}

}  // namespace

Result<std::vector<TcpAddress>> Resolve(const ServerUrl& server) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (server.literal() ? AI_NUMERICHOST : AI_ADDRCONFIG);
  addrinfo* list = nullptr;
  const int error = getaddrinfo(server.host.c_str(), fmt::format("{}", server.port).c_str(), &wanted, &list);
  if (error == EAI_SYSTEM) return Failed(errno);
  if (error != 0) return Fail(ErrorCode::kIo, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, &freeaddrinfo);
  std::vector<TcpAddress> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    TcpAddress& address = found.emplace_back(TcpAddress{.address = {}, .size = each->ai_addrlen});
    std::memcpy(&address.address, each->ai_addr, each->ai_addrlen);
  }
  if (found.empty()) return Fail(ErrorCode::kIo, gai_strerror(EAI_NONAME));
  return found;
}

Result<UniqueFd> BeginConnect(const TcpAddress& to) {
  UniqueFd fd(socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd.valid()) return Failed(errno);
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0 && errno != EINPROGRESS)
    return Failed(errno);
  return fd;
}

Status ConnectOutcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return Failed(errno);
  if (error != 0) return Failed(error);
  return {};
}

std::optional<uint64_t> AcknowledgedBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) return std::nullopt;
  return info.tcpi_bytes_acked;
}

std::optional<ByteCounts> CountBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return std::nullopt;
  return ByteCounts{.received = info.tcpi_bytes_received, .acknowledged = info.tcpi_bytes_acked};
}

}  // namespace weir::http
