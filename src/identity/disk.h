// The writes of an index, as one seam, so that tests can let each of them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace weir::identity {

// Thread-safe. Errors are those of the system, with the path in front.
class Disk {
 public:
  virtual ~Disk() = default;
  // Writes all of `bytes` at `offset`.
  virtual Status Write(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes,
                       uint64_t offset);
  virtual Status Sync(const UniqueFd& fd, const std::string& path);  // the data and the length
  virtual Status Truncate(const UniqueFd& fd, const std::string& path, uint64_t bytes);
  virtual Status Rename(const std::string& from, const std::string& to);
  virtual Status SyncFolder(const std::string& path);
  virtual Status Remove(const std::string& path);  // fine where there is no such file
};

// Creates or empties a file that only its owner may read.
Result<UniqueFd> CreatePrivateFile(const std::string& path);
// Writes a file that only its owner may read: the old one or the new one stands after a kill, and the new one
// is on the disk when this returns. After an error either may stand.
Status WritePrivateFile(Disk& disk, const std::string& path, std::string_view contents);

}  // namespace weir::identity
