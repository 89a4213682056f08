#include "http/rx_timestamps.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/timespec.h"

namespace weir::http {
namespace {

std::optional<Duration> StampIn(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    return FromTimespec(stamp);
  }
  return std::nullopt;
}

}  // namespace

void WallClockConverter::Compare(Duration wall, Instant now) {
  const Duration before = ahead_;
  ahead_ = wall - now.time_since_epoch();
  if (compared_ && std::chrono::abs(ahead_ - before) > kStep) stepped_ = now;
  compared_ = now;
}

std::optional<Instant> WallClockConverter::At(Duration stamp, Instant since, Instant now) const {
  CHECK(compared_.has_value());
  if (stepped_ && since <= *stepped_) return std::nullopt;
  return std::min(Instant(stamp - ahead_), now);
}

void RxTimestamps::Stamp(int fd) {
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

// Reads one after the other; again where something came between them.
void RxTimestamps::CompareClocks() {
  constexpr int kTries = 4;
  Duration wall{};
  Instant before = clock_.Now(), now = before;
  for (int i = 0; i < kTries && (i == 0 || now - before >= 1us); ++i) {
    before = now;
    wall = WallTime();
    now = clock_.Now();
  }
  moments_.Compare(wall, now);
}

RxTimestamps::Received RxTimestamps::Receive(int fd, std::span<std::byte> buffer, Behind behind,
                                             Instant since) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  std::byte spare;
  iovec into[] = {{.iov_base = buffer.data(), .iov_len = buffer.size()}, {.iov_base = &spare, .iov_len = 1}};
  msghdr message{};
  message.msg_iov = into;
  message.msg_iovlen = behind == Behind::kIsSurplus ? 2 : 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  Received received{.size = recvmsg(fd, &message, MSG_DONTWAIT), .came = {}};
  if (received.size < 0) received.size = -errno;
  if (received.size > std::ssize(buffer)) {
    received.size = std::ssize(buffer);
    received.is_surplus = true;
  }
  const auto stamp = received.size > 0 ? StampIn(message) : std::nullopt;
  const Instant now = received.came = clock_.Now();
  if (!stamp) return received;
  if (!moments_.IsFresh(now)) CompareClocks();
  std::optional<Instant> came = moments_.At(*stamp, since, now);
  if (came && *came + WallClockConverter::kStep < since) {
    CompareClocks();  // or was it a step that nobody has seen yet?
    came = moments_.At(*stamp, since, now);
    received.is_early = came && *came + WallClockConverter::kStep < since;
  }
  if (came) received.came = std::max(*came, std::min(since, now));
  return received;
}

}  // namespace weir::http
