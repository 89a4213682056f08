// A batch of rows, and the memory that batches share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "image/reject.h"

namespace weir::feed {

// Memory for the rows of one batch, aligned to a page. The seam for memory of another kind (pinned, a GPU's,
// shared with another process): implement it with an allocator of its own.
class BatchBuffer {
 public:
  virtual ~BatchBuffer() = default;
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 protected:
  BatchBuffer(std::byte* data, size_t size) : data_(data), size_(size) {}

 private:
  std::byte* const data_;
  const size_t size_;
};

// Makes buffers. Thread-safe.
class BatchMemory {
 public:
  virtual ~BatchMemory() = default;
  // kOverloaded where memory is used up.
  virtual Result<std::unique_ptr<BatchBuffer>> Allocate(size_t size) = 0;
};

// Anonymous memory of this process, in huge pages where the system has them to spare.
std::shared_ptr<BatchMemory> ProcessMemory();

// A sample that could not be used.
struct BadSample {
  int64_t sample = 0;  // its number in the set
  image::Reject reject;
};

// One rank's share of a global batch. A value; copying shares the rows, which go back for reuse when the last
// copy is gone. That may happen on any thread, also after the feed is gone, and takes no lock but the pool's
// own.
struct Batch {
  std::shared_ptr<BatchBuffer> rows;  // batch rows of sample_bytes each, one after the other
  std::byte* masks = nullptr;         // in `rows` behind them: batch masks of width * height; null: none
  int64_t count = 0;                  // rows that hold a sample; the first ones. The others are zeros.
  std::vector<int64_t> labels;        // of each row; -1: no label, or no sample
  std::vector<int64_t> samples;       // each row's number in the set; -1: no sample
  int64_t epoch = 0;
  int64_t position = 0;  // of the global batch's first row in the epoch
  std::vector<BadSample> bad;
};

}  // namespace weir::feed
