#include "launch/process/tail.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/thread.h"

namespace weir::launch {
namespace {
constexpr size_t kKept = 8192;  // bytes
}

Result<std::unique_ptr<Tail>> Tail::Open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("a pipe", errno);
  std::unique_ptr<Tail> tail(new Tail);
  tail->read_end_ = UniqueFd(ends[0]);
  tail->write_end_ = UniqueFd(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of the reading end only: the two ends have flags of their own
  tail->wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!tail->wake_.valid()) return FailErrno("eventfd", errno);
  tail->thread_ =
      StartThread("launch-tail", [t = tail.get()](const std::stop_token& stopped) { t->Read(stopped); });
  return tail;
}

Tail::~Tail() {
  thread_.request_stop();
  ::eventfd_write(wake_.get(), 1);
}

std::string Tail::Text() {
  while (ReadSome()) {
  }
  MutexLock lock(mutex_);
  return text_;
}

void Tail::Read(const std::stop_token& stopped) {
  while (!stopped.stop_requested()) {
    pollfd ready[] = {{read_end_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) continue;
    if (ready[0].revents != 0 && !ReadSome() && errno != EAGAIN) return;
  }
}

// False also when nothing is there now (EAGAIN).
bool Tail::ReadSome() {
  char buffer[4096];
  MutexLock lock(mutex_);  // reading and appending are one step, so that two readers keep the order
  const ssize_t got = ::read(read_end_.get(), buffer, sizeof buffer);
  if (got <= 0) {
    if (got == 0) errno = 0;
    return false;
  }
  text_.append(buffer, static_cast<size_t>(got));
  if (text_.size() > kKept) text_.erase(0, text_.size() - kKept);
  return true;
}

}  // namespace weir::launch
