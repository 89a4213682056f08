// Memory of batches that came back.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "feed/batch.h"

namespace weir::feed {

// Keeps up to `kept` buffers that consumers let go of, for the next batches, until it is closed. Thread-safe;
// lives until the last buffer is back.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  BufferPool(std::shared_ptr<BatchMemory> memory, size_t size, size_t kept)
      : memory_(std::move(memory)), size_(size), kept_(kept) {}

  Result<std::shared_ptr<BatchBuffer>> Take() {
    std::unique_ptr<BatchBuffer> buffer;
    {
      const MutexLock lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!buffer) buffer = TRY(memory_->Allocate(size_));
    return std::shared_ptr<BatchBuffer>(
        buffer.release(), [pool = shared_from_this()](BatchBuffer* returned) { pool->Return(returned); });
  }
  // Frees what it keeps, and from now on what comes back: there is no next batch.
  void Close() {
    std::vector<std::unique_ptr<BatchBuffer>> freed;
    const MutexLock lock(mutex_);
    freed.swap(free_);
    kept_ = 0;
  }

 private:
  void Return(BatchBuffer* returned) {
    std::unique_ptr<BatchBuffer> buffer(returned);
    const MutexLock lock(mutex_);
    if (free_.size() < kept_) free_.push_back(std::move(buffer));
  }

  const std::shared_ptr<BatchMemory> memory_;
  const size_t size_;
  Mutex mutex_;
  size_t kept_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<BatchBuffer>> free_ GUARDED_BY(mutex_);
};

}  // namespace weir::feed
