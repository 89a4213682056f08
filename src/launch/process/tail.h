// The last of what a program says.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"

namespace weir::launch {

// Reads a pipe on a thread of its own, "launch-tail", so that the program never waits for a reader, and keeps
// the last 8 KiB. Thread-safe.
class Tail {
 public:
  static Result<std::unique_ptr<Tail>> Open();
  ~Tail();  // waits for nobody: what comes later is not read

  int write_end() const { return write_end_.get(); }
  // To be called when the program has been given its copy: the tail ends when the last copy is closed.
  void CloseWriteEnd() { write_end_ = UniqueFd(); }

  // Returns the text read so far, with the text that lies in the pipe.
  std::string Text();

 private:
  Tail() = default;
  void Read(const std::stop_token& stopped);
  bool ReadSome();  // false: the other end is closed

  UniqueFd read_end_, write_end_, wake_;
  Mutex mutex_;
  std::string text_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace weir::launch
