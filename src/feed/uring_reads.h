// Files and parts of files read by io_uring, many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "feed/source.h"

namespace weir::feed {

// The place of a sample's bytes.
struct FilePlace {
  std::string path;
  int fd = -1;         // of the open file; -1: the file at `path` is opened, and is the sample as a whole
  int64_t offset = 0;  // with fd
  uint64_t bytes = 0;  // with fd
};

// Makes reads of which `depth` may be under way; more wait their turn. One thread ("feed-read") drives the
// ring. Rejects are those of dataset::OpenRegularFile and ReadAt. kUnsupported if this system forbids
// io_uring. `place_of` is called on the ring's thread.
Result<std::unique_ptr<SampleReads>> MakeUringReads(int depth,
                                                    std::function<FilePlace(int64_t sample)> place_of);

}  // namespace weir::feed
