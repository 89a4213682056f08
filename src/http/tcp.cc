#include "http/tcp.h"

#include <fmt/format.h>
#include <linux/tcp.h>  // has the counter, and cannot be included beside <netinet/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
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

Status WaitWritable(int fd, Instant until, const Clock& clock) {
  while (true) {
    pollfd waited{.fd = fd, .events = POLLOUT, .revents = 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration{}, until - clock.Now())).count();
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Failed(errno);
    if (clock.Now() >= until) return Fail(ErrorCode::kDeadline, "it did not answer in time");
  }
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

Duration Patience(Duration left, size_t after) { return left / (static_cast<Duration::rep>(after) + 1); }

Result<UniqueFd> Connect(const ServerUrl& server, Instant until, const Clock& clock) {
  const std::vector<TcpAddress> addresses = TRY(Resolve(server));
  Error last{ErrorCode::kIo, "no address"};
  for (size_t i = 0; i < addresses.size(); ++i) {
    Result<UniqueFd> begun = BeginConnect(addresses[i]);
    Status connected = begun ? Status() : std::unexpected(begun.error());
    if (connected) {
      const Duration patience = Patience(until - clock.Now(), addresses.size() - 1 - i);
      connected = WaitWritable(begun->get(), clock.Now() + patience, clock);
    }
    if (connected) connected = ConnectOutcome(begun->get());
    if (connected) return begun;
    last = connected.error();
  }
  return std::unexpected(last);
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
