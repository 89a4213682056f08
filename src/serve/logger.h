// The log of the server, on a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "serve/log.h"
#include "serve/log_queue.h"

namespace weir::serve {

// Where the log goes. As BoundedWriter::WriteSome: writes what there is room for, waits at most `patience`
// for it, and returns the number of bytes.
using LogSink = std::move_only_function<Result<size_t>(std::string_view text, Duration patience)>;
// Returns the sink to standard error. The process must ignore SIGPIPE.
LogSink StandardErrorSink();

// A log whose callers never wait for its reader. No fault of the reader (a full disk, a closed pipe, one that
// nobody reads) reaches them: such lines are dropped and counted. The thread "log" writes. Thread-safe.
class Logger {
 public:
  struct Options {
    LogQueue::Options queue;
    Duration close_patience = 1s;  // how long Close waits for the reader
  };
  // `clock` must outlive it.
  Logger(LogSink sink, const Clock& clock) : Logger(std::move(sink), clock, Options{}) {}
  Logger(LogSink sink, const Clock& clock, Options options);
  ~Logger();

  // Writes what is queued, as far as the reader takes it in time. What comes later is not written.
  void Close();

  // Takes a message of any length and any bytes; it becomes one line.
  void Write(LogLevel level, std::string_view message) noexcept;
  // Returns Write as a function, which the Logger must outlive.
  Log function();
  // Lines that nobody got, so far.
  uint64_t dropped() const;

 private:
  void Work();
  bool WaitForLines();
  LogQueue::Chunk Take();
  bool WriteOut(const LogQueue::Chunk& chunk);
  bool GivesUp() const;
  Instant Now() const REQUIRES(mutex_);

  const Clock& clock_;
  const Options options_;
  LogSink sink_;              // of the thread
  char last_written_ = '\n';  // of the thread: a line may have been torn

  mutable Mutex mutex_;
  CondVar changed_;
  LogQueue queue_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  Instant give_up_ GUARDED_BY(mutex_){};  // where it is closing

  std::jthread thread_;
};

}  // namespace weir::serve
