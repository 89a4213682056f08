// One connection between rank 0 and an agent: whole messages, by TLS.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "cluster/message.h"
#include "cluster/protocol.h"
#include "cluster/tls.h"

namespace weir::cluster {

class Connection {
 public:
  // Takes a connected socket that blocks, and makes the handshake of TLS with that token. Blocks until
  // `until` at most. kInvalidArgument for another token; kIo if the other side ends it; kDeadline.
  static Result<std::unique_ptr<Connection>> Open(UniqueFd fd, Side side, const std::string& token,
                                                  Instant until, const Clock& clock);
  // Takes over a handshake that is made; `reader` has what came behind it.
  Connection(UniqueFd fd, std::unique_ptr<TlsSession> tls, MessageReader reader, const Clock& clock);

  // Any thread. Blocks while the other side takes nothing, five seconds at most.
  Status Send(Word word) EXCLUDES(mutex_);
  // One thread at a time. Blocks until a message is there; nullopt if `until` came first. kIo "closed the
  // connection" at its end.
  Result<std::optional<Word>> Receive(Instant until);
  // The other side is known: its messages may be large from now on. Of the thread that receives.
  void AllowLargeMessages() { reader_.set_most(kMostMessageBytes); }
  // Any thread. Ends the connection: Receive and Send fail from now on.
  void Close();

  int fd() const { return fd_.get(); }

 private:
  Status SendBytes(std::string_view bytes) REQUIRES(mutex_);
  Status TakeBytes(std::string_view bytes) EXCLUDES(mutex_);

  const UniqueFd fd_;
  const Clock& clock_;
  MessageReader reader_;  // of the thread that receives
  Mutex mutex_;
  const std::unique_ptr<TlsSession> tls_ GUARDED_BY(mutex_);
};

}  // namespace weir::cluster
