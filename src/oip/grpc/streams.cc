#include "oip/grpc/streams.h"

#include <utility>

namespace weir::oip {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kEndStream = 1;
constexpr size_t kPreface = 24;
constexpr int64_t kLeastCalls = 4096;
constexpr int64_t kRarelyDropped = 64;  // before it is worth a look at the clock

}  // namespace

uint32_t Http2Frames::Number(size_t from, size_t size) const {
  uint32_t number = 0;
  for (size_t i = from; i < from + size; ++i) number = number << 8 | std::to_integer<uint32_t>(header_[i]);
  return number;
}

Http2Frames::Frame Http2Frames::Parse() {
  skip_ = Number(0, 3);
  return {.type = std::to_integer<uint8_t>(header_[3]),
          .flags = std::to_integer<uint8_t>(header_[4]),
          .stream = Number(5, 4) & 0x7fffffff};
}

GrpcCalls::GrpcCalls(size_t max_bytes)
    : most(std::max<int64_t>(kLeastCalls, static_cast<int64_t>(max_bytes / kBytes))) {}

GrpcStreams::GrpcStreams(std::shared_ptr<GrpcCalls> all, const Clock& clock)
    : all_(std::move(all)), clock_(clock), received_(kPreface), sent_(0), forgiven_at_(clock.Now()) {
  all_->connections.fetch_add(1, std::memory_order_relaxed);
}

GrpcStreams::~GrpcStreams() {
  all_->connections.fetch_sub(1, std::memory_order_relaxed);
  all_->calls.fetch_sub(counted_, std::memory_order_relaxed);
}

int64_t GrpcStreams::open() const {
  MutexLock lock(mutex_);
  return std::ssize(open_);
}

std::optional<GrpcRefusal> GrpcStreams::refusal() const {
  MutexLock lock(mutex_);
  return refusal_;
}

bool GrpcStreams::Received(std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  if (!refusal_) received_.Read(bytes, [this](const Http2Frames::Frame& frame) { OnReceived(frame); });
  return !refusal_;
}

void GrpcStreams::Sent(std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  sent_.Read(bytes, [this](const Http2Frames::Frame& frame) {
    const bool last = (frame.type == kHeaders || frame.type == kData) && (frame.flags & kEndStream) != 0;
    if (last || frame.type == kReset) End(frame.stream);
  });
}

void GrpcStreams::Look(Instant now) {
  MutexLock lock(mutex_);
  Count(Dropped(now));
}

// The newest are the likeliest to end.
void GrpcStreams::End(uint32_t stream) {
  const auto found = std::find(open_.rbegin(), open_.rend(), stream);
  if (found == open_.rend()) return;
  std::swap(*found, open_.back());
  open_.pop_back();
  if (Ended() <= forgiven_) Count(0);
}

void GrpcStreams::OnReceived(const Http2Frames::Frame& frame) {
  if (refusal_) return;
  if (frame.type == kReset) return End(frame.stream);
  if (frame.type != kHeaders || frame.stream <= last_) return;
  last_ = frame.stream;
  ++begun_;
  open_.push_back(frame.stream);
  const int64_t dropped = Ended() - forgiven_ > kRarelyDropped ? Dropped(clock_.Now()) : 0;
  Count(dropped);
  const int64_t share = std::max(kLeastShare, all_->most / std::max(1, all_->connections.load()));
  if (dropped > kDroppedAtOnce) {
    refusal_ = GrpcRefusal::kResets;
  } else if (counted_ > share && all_->calls.load(std::memory_order_relaxed) > all_->most) {
    refusal_ = GrpcRefusal::kCalls;
  }
}

// Calls that ended without having come out of the library.
int64_t GrpcStreams::Ended() const {
  return begun_ - std::ssize(open_) - started_.load(std::memory_order_relaxed);
}

// Returns those of them that it may not have had the time to drop.
int64_t GrpcStreams::Dropped(Instant now) {
  const int64_t ended = Ended();
  const auto more = static_cast<int64_t>(Seconds(now - forgiven_at_) * kDroppedPerSecond);
  if (more > 0) {
    forgiven_ = std::min(forgiven_ + more, std::max(forgiven_, ended));
    forgiven_at_ = now;
  }
  return std::max<int64_t>(0, ended - forgiven_);
}

void GrpcStreams::Count(int64_t dropped) {
  const int64_t now = std::ssize(open_) + dropped;
  all_->calls.fetch_add(now - std::exchange(counted_, now), std::memory_order_relaxed);
}

}  // namespace weir::oip
