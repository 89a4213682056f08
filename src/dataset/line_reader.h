// The lines of a file, one after the other, in bounded memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace weir::dataset {

// One thread at a time.
class LineReader {
 public:
  static constexpr size_t kMaxLine = 1 << 20;  // bytes

  // A file, or standard input for "-".
  static Result<LineReader> Open(const std::string& path);

  // Looks for a zero byte in the first `bytes` bytes, which must not have been read yet. Returns true where
  // there is one: the lines then end with a zero byte instead of a newline, as `find -print0` writes them.
  Result<bool> DetectZeroEnds(size_t bytes);

  // The next line without its newline, valid until the next call; nullopt at the end. The last one need not
  // have a newline. kCorrupt for a line over kMaxLine; kIo.
  Result<std::optional<std::string_view>> Next();

  int64_t line() const { return line_; }  // number of the last one, from 1

 private:
  LineReader(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status Fill();

  std::string path_;
  UniqueFd fd_;
  char end_ = '\n';  // of a line
  std::string buffer_;
  size_t at_ = 0;  // in the buffer
  bool ended_ = false;
  int64_t line_ = 0;
};

}  // namespace weir::dataset
