// Writing to a descriptor that others share and that nobody may read, such as standard error.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace weir {

// A writer that never blocks for longer than it is told. It leaves the descriptor's own flags alone, since
// other processes may share them. The process must ignore SIGPIPE. One thread at a time.
class BoundedWriter {
 public:
  // `fd` must stay open as long as the writer lives.
  explicit BoundedWriter(int fd);

  // Writes as much of `text` as there is room for, after waiting at most `patience` for the first byte of it.
  // Returns the number of bytes; 0 where there was no room. kIo where the descriptor takes no more: a full
  // disk, a reader that is gone.
  Result<size_t> WriteSome(std::string_view text, Duration patience);

  // Writes all of `text`. kDeadline when nothing could be written for `patience`.
  Status WriteAll(std::string_view text, Duration patience);

 private:
  enum class Kind { kPlain, kSocket, kOwn };
  const int fd_;
  UniqueFd own_;  // the same pipe or terminal, opened anew so that writes to it do not block
  Kind kind_ = Kind::kPlain;
};

}  // namespace weir
