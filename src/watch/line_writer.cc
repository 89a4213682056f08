#include "watch/line_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/thread.h"

namespace weir::watch {
namespace {

constexpr size_t kMostWaiting = 16 << 20;
constexpr Duration kPeriod = 100ms;

}  // namespace

Result<std::unique_ptr<LineWriter>> LineWriter::Create(const std::string& path) {
  if (path == "-") return std::unique_ptr<LineWriter>(new LineWriter(path, UniqueFd(), STDOUT_FILENO));
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  struct stat facts{};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return FailErrno(path, errno);
  // A file that was there keeps its readers otherwise. A pipe or a device is another's.
  if (S_ISREG(facts.st_mode) && ::fchmod(fd.get(), 0600) != 0) return FailErrno(path, errno);
  const int number = fd.get();
  return std::unique_ptr<LineWriter>(new LineWriter(path, std::move(fd), number));
}

LineWriter::LineWriter(std::string path, UniqueFd own, int fd)
    : path_(std::move(path)), own_(std::move(own)), fd_(fd) {
  thread_ = StartThread("lines", [this](const std::stop_token& stop) { Work(stop); });
}

LineWriter::~LineWriter() {
  const Status told = Finish();
  static_cast<void>(told);
}

void LineWriter::Add(std::string line) {
  MutexLock lock(mutex_);
  if (waiting_.size() + line.size() > kMostWaiting) {
    ++dropped_;
    return;
  }
  waiting_ += line;
}

void LineWriter::WriteOut(const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = ::write(fd_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      MutexLock lock(mutex_);
      if (error_ == 0) error_ = errno;
      return;
    }
    at += static_cast<size_t>(written);
  }
}

void LineWriter::Work(const std::stop_token&) {
  const SteadyClock clock;
  bool last = false;
  while (!last) {
    std::string text;
    {
      MutexLock lock(mutex_);
      const Instant until = clock.Now() + kPeriod;
      while (!ending_ && changed_.WaitUntil(mutex_, until)) {
      }
      last = ending_;
      text = std::exchange(waiting_, {});
    }
    WriteOut(text);
  }
}

Status LineWriter::Finish() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  if (error_ != 0) return FailErrno("write " + path_, error_);
  return {};
}

int64_t LineWriter::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace weir::watch
