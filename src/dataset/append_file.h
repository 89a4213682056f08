// A file that grows: appended to through a buffer, hashed on the way, cut back to where it was good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "dataset/hash.h"

namespace weir::dataset {

// One thread at a time.
class AppendFile {
 public:
  enum class Hashed { kNo, kYes };
  // Opens `path`, or makes it, and cuts it to its first `bytes`, which are read once for the hash. kCorrupt
  // where it has fewer.
  static Result<AppendFile> Open(std::string path, int64_t bytes, Hashed hashed);

  Status Add(std::string_view text);
  // Adds a newline too.
  Status AddLine(std::string_view line);
  Status Flush();

  // Returns the line that begins at byte `offset` of what was flushed, without its newline. kCorrupt where
  // none ends.
  Result<std::string> LineAt(int64_t offset) const;

  int64_t bytes() const { return written_ + std::ssize(buffer_); }
  std::string Hash() const { return hash_->Digest(); }  // of all that was flushed. REQUIRES: kYes
  // Another descriptor of the same file, for a thread that waits for the disk.
  Result<UniqueFd> Duplicate() const;

 private:
  AppendFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  int64_t written_ = 0;
  std::optional<StreamHash> hash_;
};

}  // namespace weir::dataset
