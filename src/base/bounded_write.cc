#include "base/bounded_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace weir {

BoundedWriter::BoundedWriter(int fd) : fd_(fd) {
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return;
  if (S_ISSOCK(facts.st_mode)) kind_ = Kind::kSocket;
  if (!S_ISFIFO(facts.st_mode) && !S_ISCHR(facts.st_mode)) return;
  // Fails where the reader is gone, or where this user may not open what it was given: then a write goes out
  // only after poll has told that there is room, in pieces that a pipe takes whole.
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own_.valid()) kind_ = Kind::kOwn;
}

Result<size_t> BoundedWriter::WriteSome(std::string_view text, Duration patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  pollfd room{.fd = kind_ == Kind::kOwn ? own_.get() : fd_, .events = POLLOUT, .revents = 0};
  const int ready = ::poll(&room, 1, static_cast<int>(std::min<int64_t>(milliseconds, INT_MAX)));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return 0;
  if (ready < 0) return FailErrno("write", errno);
  ssize_t put = 0;
  if (kind_ == Kind::kSocket) {
    put = ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else if (kind_ == Kind::kOwn) {
    put = ::write(own_.get(), text.data(), text.size());
  } else {
    put = ::write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
  }
  if (put >= 0) return static_cast<size_t>(put);
  if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return 0;
  return FailErrno("write", errno);
}

Status BoundedWriter::WriteAll(std::string_view text, Duration patience) {
  const SteadyClock clock;
  Instant until = clock.Now() + patience;
  while (!text.empty()) {
    const Instant now = clock.Now();
    if (now > until) return Fail(ErrorCode::kDeadline, "write: nobody reads");
    const size_t put = TRY(WriteSome(text, std::min<Duration>(until - now, 1s)));
    if (put > 0) until = now + patience;
    text.remove_prefix(put);
  }
  return {};
}

}  // namespace weir
