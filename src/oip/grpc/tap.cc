#include "oip/grpc/tap.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

namespace weir::oip {
namespace {

using Followed = std::shared_ptr<GrpcStreams>;

constexpr int kMostFiles = 1 << 16;

// By descriptor. Whoever reads or writes a socket keeps it from being closed, so what is found stays.
std::array<std::atomic<Followed*>, kMostFiles> followed;

Followed* Find(int fd) {
  return fd >= 0 && fd < kMostFiles ? followed[static_cast<size_t>(fd)].load(std::memory_order_acquire)
                                    : nullptr;
}

void Forget(int fd) {
  if (Find(fd) != nullptr) delete followed[static_cast<size_t>(fd)].exchange(nullptr);
}

// Calls `take` with the pieces of the first `size` bytes, for as long as it returns true.
template <typename Take>
bool EachPiece(const msghdr& message, ssize_t size, Take take) {
  auto left = static_cast<size_t>(size);
  for (size_t i = 0; i < message.msg_iovlen && left > 0; ++i) {
    const iovec& piece = message.msg_iov[i];
    const size_t count = std::min(piece.iov_len, left);
    if (!take(std::span(static_cast<const std::byte*>(piece.iov_base), count))) return false;
    left -= count;
  }
  return true;
}

}  // namespace

bool TapSocket(int fd, std::shared_ptr<GrpcStreams> streams) {
  if (fd < 0 || fd >= kMostFiles) return false;
  delete followed[static_cast<size_t>(fd)].exchange(new Followed(std::move(streams)));
  return true;
}

}  // namespace weir::oip

// The names that `--wrap` gives. NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

ssize_t __real_recvmsg(int fd, msghdr* message, int flags);
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
int __real_close(int fd);

ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t size = __real_recvmsg(fd, message, flags);
  const auto* const streams = weir::oip::Find(fd);
  if (streams == nullptr || size <= 0 || (flags & MSG_ERRQUEUE) != 0) return size;
  const auto take = [&](std::span<const std::byte> bytes) { return (*streams)->Received(bytes); };
  if (weir::oip::EachPiece(*message, size, take)) return size;
  ::shutdown(fd, SHUT_RDWR);
  return 0;
}

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  const ssize_t size = __real_sendmsg(fd, message, flags);
  const auto* const streams = weir::oip::Find(fd);
  if (streams == nullptr || size <= 0) return size;
  weir::oip::EachPiece(*message, size, [&](std::span<const std::byte> bytes) {
    (*streams)->Sent(bytes);
    return true;
  });
  return size;
}

int __wrap_close(int fd) {
  weir::oip::Forget(fd);
  return __real_close(fd);
}

}  // extern "C" NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
