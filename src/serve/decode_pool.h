// Threads for work that is too long for a server's thread and not the engine's: decoding and normalising.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace weir::serve {

// Thread-safe. Its threads are named "decode-N". Work is begun in the order of its arrival, and the pieces of
// one work are done side by side. The destructor finishes what waits.
class DecodePool {
 public:
  // Owned by those who work on it.
  class Work {
   public:
    virtual ~Work() = default;
    virtual size_t pieces() const = 0;  // at least 1
    virtual void Do(size_t piece) = 0;  // several at once
    virtual void Finish() = 0;          // after the last piece, once

   private:
    friend class DecodePool;
    size_t next_ = 0;  // piece to begin; guarded by the pool
    std::atomic<size_t> done_{0};
  };

  DecodePool(int threads, size_t max_waiting);
  ~DecodePool();

  // False when `max_waiting` works wait already.
  [[nodiscard]] bool Offer(const std::shared_ptr<Work>& work);

 private:
  void Run(const std::stop_token& stop);

  const size_t max_waiting_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Work>> waiting_ GUARDED_BY(mutex_);

  std::vector<std::jthread> threads_;
};

}  // namespace weir::serve
