// The calls of a gRPC connection, followed in the bytes that pass: the library tells of a call only once its
// first message is complete, and of one that was dropped before not at all.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "oip/grpc/admission.h"

namespace weir::oip {

// Finds the frames of HTTP/2 in one direction of a connection, whatever the pieces in which its bytes come.
class Http2Frames {
 public:
  struct Frame {
    uint8_t type = 0, flags = 0;
    uint32_t stream = 0;
  };
  // `preface`: bytes before the first frame.
  explicit Http2Frames(size_t preface) : skip_(preface) {}

  // Calls `each` with every frame whose header ends in `bytes`.
  template <typename Each>
  void Read(std::span<const std::byte> bytes, Each&& each) {
    while (true) {
      const size_t payload = std::min(skip_, bytes.size());
      skip_ -= payload;
      bytes = bytes.subspan(payload);
      const size_t piece = std::min(kHeader - have_, bytes.size());
      std::copy_n(bytes.begin(), piece, header_.begin() + static_cast<std::ptrdiff_t>(have_));
      have_ += piece;
      if (have_ < kHeader) return;
      have_ = 0;
      bytes = bytes.subspan(piece);
      each(Parse());
    }
  }

 private:
  static constexpr size_t kHeader = 9;
  uint32_t Number(size_t from, size_t size) const;
  Frame Parse();

  size_t skip_, have_ = 0;  // bytes of a payload to come, and of a header that came
  std::array<std::byte, kHeader> header_{};
};

// The calls that all connections of a server have in the library. Thread-safe.
struct GrpcCalls {
  // A call is counted as so many bytes of the `max_bytes` that messages may take: 13 KB and its headers, up
  // to 8 KB, in the library, and ours.
  static constexpr size_t kBytes = 32768;
  explicit GrpcCalls(size_t max_bytes);

  const int64_t most;
  std::atomic<int64_t> calls = 0;
  std::atomic<int> connections = 0;
};

// Counts the calls of one connection, and tells when it begins and drops more than the library can take. A
// call takes memory there from its headers on, and for a while after the client has reset it. Thread-safe.
class GrpcStreams {
 public:
  GrpcStreams(std::shared_ptr<GrpcCalls> all, const Clock& clock);
  GrpcStreams(const GrpcStreams&) = delete;
  GrpcStreams& operator=(const GrpcStreams&) = delete;
  ~GrpcStreams();

  // Takes bytes that came from the client, before the library has them. False, from then on: the connection
  // must be closed, and the library should see none of these bytes.
  bool Received(std::span<const std::byte> bytes);
  // Takes bytes that went to the client.
  void Sent(std::span<const std::byte> bytes);
  // A call came out of the library.
  void Started() { started_.fetch_add(1, std::memory_order_relaxed); }
  // Must be called about four times a second: calls that were dropped count for a while.
  void Look(Instant now);

  int64_t open() const;                        // streams that neither side has ended
  std::optional<GrpcRefusal> refusal() const;  // why the connection must be closed

 private:
  static constexpr int64_t kDroppedAtOnce = 2048;    // calls that may be dropped before they have started
  static constexpr int64_t kDroppedPerSecond = 200;  // and go on being dropped
  static constexpr int64_t kLeastShare = 64;         // calls that no other connection can take away

  void OnReceived(const Http2Frames::Frame& frame) REQUIRES(mutex_);
  void End(uint32_t stream) REQUIRES(mutex_);
  int64_t Ended() const REQUIRES(mutex_);
  int64_t Dropped(Instant now) REQUIRES(mutex_);
  void Count(int64_t dropped) REQUIRES(mutex_);

  const std::shared_ptr<GrpcCalls> all_;
  const Clock& clock_;
  std::atomic<int64_t> started_ = 0;

  mutable Mutex mutex_;
  Http2Frames received_ GUARDED_BY(mutex_), sent_ GUARDED_BY(mutex_);
  std::vector<uint32_t> open_ GUARDED_BY(mutex_);
  uint32_t last_ GUARDED_BY(mutex_) = 0;      // stream begun
  int64_t begun_ GUARDED_BY(mutex_) = 0;      // streams
  int64_t forgiven_ GUARDED_BY(mutex_) = 0;   // of those that were dropped
  Instant forgiven_at_ GUARDED_BY(mutex_){};  // for the last time
  int64_t counted_ GUARDED_BY(mutex_) = 0;    // among all_->calls
  std::optional<GrpcRefusal> refusal_ GUARDED_BY(mutex_);
};

}  // namespace weir::oip
