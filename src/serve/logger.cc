#include "serve/logger.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/bounded_write.h"
#include "base/secrets.h"
#include "base/thread.h"

namespace weir::serve {
namespace {

constexpr Duration kPatience = 100ms;  // of one write

}  // namespace

LogSink StandardErrorSink() {
  return [writer = std::make_unique<BoundedWriter>(STDERR_FILENO)](std::string_view text, Duration patience) {
    return writer->WriteSome(text, patience);
  };
}

Logger::Logger(LogSink sink, const Clock& clock, Options options)
    : clock_(clock), options_(options), sink_(std::move(sink)), queue_(options.queue) {
  thread_ = StartThread("log", [this](const std::stop_token&) { Work(); });
}

Logger::~Logger() { Close(); }

void Logger::Close() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    give_up_ = clock_.Now() + options_.close_patience;
  }
  changed_.NotifyAll();
  thread_.join();
}

void Logger::Write(LogLevel level, std::string_view message) noexcept {
  try {
    const std::string time = WallTimeLabel(), shown = WithoutSecrets(message);
    MutexLock lock(mutex_);
    queue_.Offer(level, shown, time, clock_.Now());
  } catch (const std::exception&) {  // out of memory
    MutexLock lock(mutex_);
    queue_.CountDropped();
  }
  changed_.NotifyAll();
}

Log Logger::function() {
  return [this](LogLevel level, const std::string& line) { Write(level, line); };
}

uint64_t Logger::dropped() const {
  MutexLock lock(mutex_);
  return queue_.dropped();
}

void Logger::Work() {
  while (WaitForLines() && WriteOut(Take())) {
  }
}

// Returns false once the log is closing and nothing is left.
bool Logger::WaitForLines() {
  MutexLock lock(mutex_);
  while (!queue_.ready(Now())) {
    if (closing_) return false;
    if (const auto due = queue_.due()) {
      changed_.WaitUntil(mutex_, *due);
    } else {
      changed_.Wait(mutex_);
    }
  }
  return true;
}

LogQueue::Chunk Logger::Take() {
  MutexLock lock(mutex_);
  return queue_.Take(WallTimeLabel(), Now());
}

// Returns false if the log is closing and the reader takes nothing.
bool Logger::WriteOut(const LogQueue::Chunk& chunk) {
  const std::string mend = last_written_ == '\n' ? "" : "\n";
  const std::string text = mend + chunk.text;
  for (size_t done = 0; done < text.size();) {
    const auto put = sink_(std::string_view(text).substr(done), kPatience);
    if (!put) {
      const auto begin = text.begin() + std::ssize(mend), end = text.begin() + static_cast<ptrdiff_t>(done);
      const auto written = begin < end ? std::count(begin, end, '\n') : 0;
      MutexLock lock(mutex_);
      queue_.Lost(chunk, static_cast<uint64_t>(written), put.error().message);
      return true;
    }
    if (*put == 0 && GivesUp()) return false;
    if (*put > 0) last_written_ = text[done + *put - 1];
    done += *put;
  }
  return true;
}

bool Logger::GivesUp() const {
  MutexLock lock(mutex_);
  return closing_ && clock_.Now() >= give_up_;
}

// At the end nothing waits for its time any more.
Instant Logger::Now() const { return closing_ ? Instant::max() : clock_.Now(); }

}  // namespace weir::serve
