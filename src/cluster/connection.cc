#include "cluster/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "launch/process/spawn.h"

namespace weir::cluster {
namespace {

constexpr Duration kSendTimeout = 5s;

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Open(UniqueFd fd, Side side, const std::string& token,
                                                     Instant until, const Clock& clock) {
  auto made = std::unique_ptr<Connection>(new Connection(std::move(fd), clock));
  if (!token.empty()) TRY_STATUS(made->ShakeHands(side, token, until));
  return made;
}

Status Connection::ShakeHands(Side side, const std::string& token, Instant until) {
  auto tls = TRY(TlsSession::Create(side, token));
  while (true) {
    const std::string output = tls->TakeOutput();
    {
      const MutexLock lock(mutex_);
      TRY_STATUS(SendBytes(output));
    }
    if (tls->established()) break;
    const auto bytes = ReceiveBytes(until);
    if (!bytes && bytes.error().code == ErrorCode::kIo)
      return Fail(ErrorCode::kInvalidArgument,
                  "the other side ended the TLS handshake: both sides need the same token (--token-file)");
    if (!bytes) return std::unexpected(bytes.error());
    if (bytes->empty()) return Fail(ErrorCode::kDeadline, "the TLS handshake did not end in time");
    if (const Status taken = tls->Receive(*bytes); !taken) {
      const MutexLock lock(mutex_);
      (void)SendBytes(tls->TakeOutput());  // the alert, for the other side's message
      return taken;
    }
  }
  // The first messages may have come with the last bytes of the handshake.
  reader_.Add(TRY(tls->Read()));
  const MutexLock lock(mutex_);
  tls_ = std::move(tls);
  return {};
}

Status Connection::SendBytes(std::string_view bytes) {
  const Instant until = clock_.Now() + kSendTimeout;
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == ECONNRESET || errno == EPIPE) return Fail(ErrorCode::kIo, "closed the connection");
    if (errno != EAGAIN) return FailErrno("send", errno);
    if (clock_.Now() >= until) return Fail(ErrorCode::kDeadline, "takes no bytes for 5 s");
    pollfd waited{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&waited, 1, launch::PollTimeout(until, clock_));
  }
  return {};
}

Status Connection::Send(const Message& message) {
  const std::string bytes = EncodeMessage(message);
  const MutexLock lock(mutex_);
  if (!tls_) return SendBytes(bytes);
  TRY_STATUS(tls_->Write(bytes));
  return SendBytes(tls_->TakeOutput());
}

// Returns what came, at least a byte; nothing if `until` came first.
Result<std::string> Connection::ReceiveBytes(Instant until) {
  std::array<char, 65536> piece;
  while (true) {
    pollfd waited{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, launch::PollTimeout(until, clock_));
    if (ready == 0 && clock_.Now() >= until) return std::string();
    if (ready <= 0) continue;
    const ssize_t count = ::recv(fd_.get(), piece.data(), piece.size(), 0);
    if (count > 0) return std::string(piece.data(), static_cast<size_t>(count));
    if (count == 0 || errno == ECONNRESET) return Fail(ErrorCode::kIo, "closed the connection");
    if (errno != EINTR && errno != EAGAIN) return FailErrno("receive", errno);
  }
}

Status Connection::TakeBytes(std::string_view bytes) {
  const MutexLock lock(mutex_);
  if (!tls_) {
    if (bytes.starts_with("\x16\x03"))
      return Fail(ErrorCode::kInvalidArgument, "the other side speaks TLS: give this one its --token-file");
    reader_.Add(bytes);
    return {};
  }
  TRY_STATUS(tls_->Receive(bytes));
  reader_.Add(TRY(tls_->Read()));
  return SendBytes(tls_->TakeOutput());
}

Result<std::optional<Message>> Connection::Receive(Instant until) {
  while (true) {
    auto next = TRY(reader_.Next());
    if (next) return next;
    const std::string bytes = TRY(ReceiveBytes(until));
    if (bytes.empty()) return std::nullopt;
    TRY_STATUS(TakeBytes(bytes));
  }
}

void Connection::Close() { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace weir::cluster
