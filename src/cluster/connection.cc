#include "cluster/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "cluster/handshake.h"
#include "cluster/socket.h"
#include "launch/process/spawn.h"

namespace weir::cluster {
namespace {

constexpr Duration kSendTimeout = 5s;

// Returns what came, at least a byte; nothing if `until` came first.
Result<std::string> ReceiveBytes(int fd, Instant until, const Clock& clock) {
  while (true) {
    if (!WaitFor(fd, POLLIN, until, clock)) return std::string();
    std::string bytes = TRY(ReceiveNow(fd));
    if (!bytes.empty()) return bytes;
  }
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::Open(UniqueFd fd, Side side, const std::string& token,
                                                     Instant until, const Clock& clock) {
  Handshake handshake(std::move(fd), side, token, Handshake::Until::kEncrypted);
  while (true) {
    const auto made = handshake.Step();
    if (!made && made.error().code == ErrorCode::kIo)
      return Fail(ErrorCode::kIo,
                  "the other side ended the TLS handshake: both sides need the same token (--token-file)");
    if (TRY(made)) break;
    if (!WaitFor(handshake.fd(), POLLIN, until, clock))
      return Fail(ErrorCode::kDeadline,
                  "the TLS handshake did not end in time: another run may be using the agent");
  }
  return std::move(handshake).Finish(clock);
}

Connection::Connection(UniqueFd fd, std::unique_ptr<TlsSession> tls, MessageReader reader, const Clock& clock)
    : fd_(std::move(fd)), clock_(clock), reader_(std::move(reader)), tls_(std::move(tls)) {}

Status Connection::SendBytes(std::string_view bytes) {
  const Instant until = clock_.Now() + kSendTimeout;
  while (!bytes.empty()) {
    bytes.remove_prefix(TRY(SendNow(fd_.get(), bytes)));
    if (!bytes.empty() && !WaitFor(fd_.get(), POLLOUT, until, clock_))
      return Fail(ErrorCode::kDeadline, "takes no bytes for 5 s");
  }
  return {};
}

Status Connection::Send(Word word) {
  const std::string bytes = TRY(EncodeMessage(ToMessage(std::move(word))));
  const MutexLock lock(mutex_);
  TRY_STATUS(tls_->Write(bytes));
  return SendBytes(tls_->TakeOutput());
}

Status Connection::TakeBytes(std::string_view bytes) {
  const MutexLock lock(mutex_);
  TRY_STATUS(tls_->Receive(bytes));
  reader_.Add(TRY(tls_->Read()));
  return SendBytes(tls_->TakeOutput());
}

Result<std::optional<Word>> Connection::Receive(Instant until) {
  while (true) {
    auto next = TRY(reader_.Next());
    if (next) return TRY(WordFrom(*std::move(next)));
    const std::string bytes = TRY(ReceiveBytes(fd_.get(), until, clock_));
    if (bytes.empty()) return std::nullopt;
    TRY_STATUS(TakeBytes(bytes));
  }
}

void Connection::Close() { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace weir::cluster
