// Files: read with limits, written whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace weir {

// Owns a file descriptor. One thread at a time.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Reads a regular file whole. The file is opened without blocking, so a named pipe or a device is an error
// and never a wait. kNotFound; kInvalidArgument for what is not a regular file, or is larger than `max_bytes`
// (both told before memory is asked for); kIo when it shrinks while being read. The message begins with
// `path`.
Result<Bytes> ReadFile(const std::string& path, uint64_t max_bytes);

// Text for small files (configurations, labels): at most 64 MiB.
Result<std::string> ReadTextFile(const std::string& path);

// Writes beside `path` (beside its target where it is a link; in place where it is a device or a pipe) and
// renames over it: after a kill at any moment the old file or the new one is there, whole. `durable` also
// waits for the disk.
enum class Durability { kNone, kSynced };
Status WriteFileWhole(const std::string& path, std::string_view contents,
                      Durability durability = Durability::kNone);

// Whether WriteFileWhole could write `path` now, asked before the work whose result is to lie there; nothing
// is made or changed. kInvalidArgument for a folder, for what is no folder above it, and for a name that is
// none or too long; kNotFound where the folder is not there; kIo where it may not be written.
Status CheckWritable(const std::string& path);

// "PATH.PID.tmp", where a file is written until it is whole and takes the place of `path`. What processes
// that no longer live have left under such a name is removed first.
std::string TemporaryBeside(const std::string& path);

// Makes `path` and the folders above it; fine when it is there.
Status MakeFolders(const std::string& path);

}  // namespace weir
