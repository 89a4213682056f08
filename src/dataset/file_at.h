// Parts of an open file, at the places where they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace weir::dataset {

struct OpenedFile {
  UniqueFd fd;
  int64_t bytes = 0;
};
// Opens a file to be read, without blocking on a pipe or a device: those are kCorrupt. kNotFound, kIo.
Result<OpenedFile> OpenRegularFile(const std::string& path);

// Fills `into` from byte `offset` on, and gives how many bytes were there: fewer only where the file ends
// before. `path` is for the message.
Result<size_t> ReadAt(const UniqueFd& fd, const std::string& path, std::span<std::byte> into, int64_t offset);

Status WriteAt(const UniqueFd& fd, const std::string& path, std::span<const std::byte> bytes, int64_t offset);

}  // namespace weir::dataset
