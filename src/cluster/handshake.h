// Connections on their way from a socket to messages: TLS, and the first message where one is awaited. None
// of them blocks, so that silent ones keep nobody out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cluster/connection.h"
#include "cluster/message.h"
#include "cluster/tls.h"

namespace weir::cluster {

// One of them. One thread at a time.
class Handshake {
 public:
  enum class Until { kEncrypted, kFirstMessage };
  Handshake(UniqueFd fd, Side side, const std::string& token, Until until)
      : fd_(std::move(fd)), side_(side), token_(token), until_(until) {}

  // Takes what has come, and answers. True once it is made. kInvalidArgument for another token; kIo if the
  // other side ended it; kCorrupt for more bytes than a handshake has.
  Result<bool> Step();
  // REQUIRES: Step said true.
  std::unique_ptr<Connection> Finish(const Clock& clock) &&;

  int fd() const { return fd_.get(); }
  bool silent() const { return received_ == 0; }

 private:
  Status Take(const std::string& bytes);
  Result<bool> IsMade() const;

  UniqueFd fd_;
  Side side_;
  std::string token_;
  Until until_;
  std::unique_ptr<TlsSession> tls_;  // null before the first byte: a silent one costs a descriptor
  MessageReader reader_{kMostFirstBytes};
  size_t received_ = 0;
};

// Those that come to a socket, side by side. Bounded: beyond kMost the oldest silent one goes, else the
// oldest. One thread at a time.
class Handshakes {
 public:
  static constexpr size_t kMost = 256;
  // `each`: the time for one of them. `clock` must outlive it.
  Handshakes(std::string token, Handshake::Until until, Duration each, const Clock& clock)
      : token_(std::move(token)), until_(until), each_(each), clock_(clock) {}

  // Accepts connections of `listener` and moves all on until one is made; null if `until` came first. The
  // errors are those of `listener`.
  Result<std::unique_ptr<Connection>> Next(int listener, Instant until);

  // Those that failed since the last call: how many, and the last one's error with the other side's address.
  struct Refusals {
    int64_t count = 0;
    Error last;
  };
  Refusals TakeRefusals() { return std::exchange(refusals_, {}); }

 private:
  struct Pending {
    Handshake handshake;
    std::string from;
    Instant until;
  };
  Status AcceptAll(int listener, Instant now);
  void MakeRoom();
  void Refuse(std::deque<Pending>::iterator pending, const Error& why);
  void EndLate(Instant now);

  const std::string token_;
  const Handshake::Until until_;
  const Duration each_;
  const Clock& clock_;
  std::deque<Pending> pending_;  // the oldest first
  Refusals refusals_;
};

}  // namespace weir::cluster
