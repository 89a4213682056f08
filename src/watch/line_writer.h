// Lines to a file, without a wait for the disk on the threads that make them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"

namespace weir::watch {

// Thread-safe. A thread "lines" writes whole lines every 100 ms, so that a kill leaves whole lines, and loses
// those of the last 100 ms at most. Lines beyond 16 MiB that wait are dropped and counted.
class LineWriter {
 public:
  // Makes the file anew, readable by its owner alone; "-" is standard output. kIo names the path.
  static Result<std::unique_ptr<LineWriter>> Create(const std::string& path);
  ~LineWriter();

  void Add(std::string line);  // with its newline
  // Writes what waits. kIo if anything could not be written.
  Status Finish();
  int64_t dropped() const;

 private:
  LineWriter(std::string path, UniqueFd own, int fd);
  void Work(const std::stop_token& stop);
  void WriteOut(const std::string& text);

  const std::string path_;
  const UniqueFd own_;
  const int fd_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string waiting_ GUARDED_BY(mutex_);
  int64_t dropped_ GUARDED_BY(mutex_) = 0;
  int error_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace weir::watch
