// One connection between rank 0 and an agent: whole messages, by TLS where there is a token.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "cluster/message.h"
#include "cluster/tls.h"

namespace weir::cluster {

class Connection {
 public:
  // Takes a connected socket that blocks, and makes the handshake of TLS if `token` is not empty. Blocks
  // until `until` at most. kInvalidArgument for another token; kDeadline.
  static Result<std::unique_ptr<Connection>> Open(UniqueFd fd, Side side, const std::string& token,
                                                  Instant until, const Clock& clock);

  // Any thread. Blocks while the other side takes nothing, five seconds at most.
  Status Send(const Message& message) EXCLUDES(mutex_);
  // One thread at a time. Blocks until a message is there; nullopt if `until` came first. kIo "closed the
  // connection" at its end.
  Result<std::optional<Message>> Receive(Instant until);
  // Any thread. Ends the connection: Receive and Send fail from now on.
  void Close();

  int fd() const { return fd_.get(); }

 private:
  Connection(UniqueFd fd, const Clock& clock) : fd_(std::move(fd)), clock_(clock) {}
  Status ShakeHands(Side side, const std::string& token, Instant until);
  Status SendBytes(std::string_view bytes) REQUIRES(mutex_);
  Status TakeBytes(std::string_view bytes) EXCLUDES(mutex_);
  Result<std::string> ReceiveBytes(Instant until);

  const UniqueFd fd_;
  const Clock& clock_;
  MessageReader reader_;  // of the thread that receives
  Mutex mutex_;
  std::unique_ptr<TlsSession> tls_ GUARDED_BY(mutex_);
};

}  // namespace weir::cluster
