#include "cluster/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "http/tcp.h"
#include "launch/process/spawn.h"

namespace weir::cluster {
namespace {

http::ServerUrl UrlOf(const Address& address) {
  return {.scheme = "http", .host = address.host, .port = address.port};
}

void SendWithoutDelay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

std::string Address::ToString() const { return UrlOf(*this).Address(); }

Result<Address> ParseAddress(const std::string& text) {
  const auto refuse = [&](const char* why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not HOST:PORT: {}", text, why));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return refuse("the port is missing");
  Address address{.host = text.substr(0, colon)};
  const std::string_view port = std::string_view(text).substr(colon + 1);
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (fault != std::errc() || end != port.data() + port.size() || port.empty())
    return refuse("a port is a number up to 65535");
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  else if (address.host.contains(':'))
    return refuse("an IPv6 address stands in brackets");
  if (address.host.empty() || address.host.starts_with('-') ||
      std::ranges::any_of(address.host, [](unsigned char c) { return c <= ' ' || c == '/' || c == '@'; }))
    return refuse("the host is missing, or no name");
  return address;
}

bool IsLoopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return host == "localhost";
}

Result<UniqueFd> Listen(const Address& address) {
  const auto found = TRY_CONTEXT(http::Resolve(UrlOf(address)), "listen at " + address.ToString());
  const http::TcpAddress& at = found.front();
  UniqueFd fd(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FailErrno("a socket", errno);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) != 0 ||
      ::listen(fd.get(), 1024) != 0) {
    const int error = errno;
    if (error == EADDRINUSE)
      return Fail(ErrorCode::kIo, fmt::format("{} is in use: choose another port", address.ToString()));
    return FailErrno("listen at " + address.ToString(), error);
  }
  return fd;
}

Result<uint16_t> PortOf(int fd) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) return FailErrno("getsockname", errno);
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

Result<std::string> HostOf(int fd, bool other_end) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  const auto ask = other_end ? ::getpeername : ::getsockname;
  if (ask(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) return FailErrno("a socket's address", errno);
  char text[INET6_ADDRSTRLEN] = "";
  const void* const bytes =
      at.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(at).sin6_addr)
          : &reinterpret_cast<const sockaddr_in&>(at).sin_addr;
  ::inet_ntop(at.ss_family, bytes, text, sizeof text);
  return std::string(text);
}

Result<UniqueFd> Accept(int fd, Instant until, const Clock& clock) {
  while (true) {
    UniqueFd made(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
    if (made.valid()) {
      SendWithoutDelay(made.get());
      return made;
    }
    const int error = errno;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
      return Fail(ErrorCode::kOverloaded, "accept: descriptors or memory are used up");
    if (error == EBADF || error == EINVAL || error == ENOTSOCK || error == EOPNOTSUPP || error == EFAULT)
      return FailErrno("accept", error);
    // Anything else is of one connection that has failed, or there is none.
    if (!WaitFor(fd, POLLIN, until, clock)) return UniqueFd();
  }
}

Result<UniqueFd> Connect(const Address& address, Instant until, const Clock& clock) {
  constexpr Duration kPause = 50ms;
  while (true) {
    auto fd = http::Connect(UrlOf(address), until, clock);
    if (fd) {
      ::fcntl(fd->get(), F_SETFL, ::fcntl(fd->get(), F_GETFL) & ~O_NONBLOCK);
      SendWithoutDelay(fd->get());
      return fd;
    }
    if (clock.Now() + kPause >= until) return Context(address.ToString(), fd.error());
    SleepUntil(clock.Now() + kPause);
  }
}

bool WaitFor(int fd, short events, Instant until, const Clock& clock) {
  std::vector<pollfd> waited{{.fd = fd, .events = events, .revents = 0}};
  WaitForAny(waited, until, clock);
  return waited.front().revents != 0;
}

void WaitForAny(std::vector<pollfd>& waited, Instant until, const Clock& clock) {
  while (true) {
    const int ready = ::poll(waited.data(), waited.size(), launch::PollTimeout(until, clock));
    if (ready > 0 || (ready == 0 && clock.Now() >= until)) return;
    if (ready < 0 && errno != EINTR) SleepUntil(std::min(until, clock.Now() + 10ms));
    if (ready < 0 && clock.Now() >= until) return;
  }
}

Result<std::string> ReceiveNow(int fd) {
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t count = ::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT);
    if (count > 0) return std::string(piece.data(), static_cast<size_t>(count));
    if (count == 0 || errno == ECONNRESET) return Fail(ErrorCode::kIo, "closed the connection");
    if (errno == EAGAIN) return std::string();
    if (errno != EINTR) return FailErrno("receive", errno);
  }
}

Result<size_t> SendNow(int fd, std::string_view bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == ECONNRESET || errno == EPIPE) {
      return Fail(ErrorCode::kIo, "closed the connection");
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return FailErrno("send", errno);
    }
  }
  return sent;
}

}  // namespace weir::cluster
