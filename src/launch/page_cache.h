// Counts, evicts and loads the pages of files in the kernel's page cache: a cold start, or a warm one,
// without root.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::launch {

// The cached part of several files. A value.
struct CacheState {
  int64_t files = 0;
  uint64_t bytes = 0;         // of the files, in whole pages
  uint64_t cached_bytes = 0;  // of these, in the page cache
  int64_t unknown = 0;        // files of which the kernel does not tell: neither ours nor ours to write
};

// Evicts files, and folders with all that is below them; links are followed, but not to folders. Writes out
// what is not on the disk yet and tells the kernel to forget the rest (fsync, posix_fadvise DONTNEED); then
// what stayed: pages that a running program has mapped or locked, and those of file systems that live in
// memory. It is for the caller to judge whether that is cold. Other programs' files are not touched.
// kNotFound for a path that is not there; kIo.
Result<CacheState> DropFromCache(const std::vector<std::string>& paths);

// Reads every file that is not wholly in the page cache, once, and tells what is there then: less than all
// where the files are larger than the memory that is free. Errors as above.
Result<CacheState> ReadIntoCache(const std::vector<std::string>& paths);

}  // namespace weir::launch
