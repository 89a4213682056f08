// Threads that share the work of one look-up or one build.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace weir::identity {

// A fixed number of workers, of which the caller is one. Thread-safe: where the workers are busy with another
// caller, the caller does all of its work itself.
class Team {
 public:
  explicit Team(int workers);  // at least 1; 1 starts no thread
  ~Team();
  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls work(worker) on each of some workers, numbered from 0, at the same time; returns after all have
  // returned. Worker 0 is the calling thread. The number of calls is between 1 and workers(), so work must be
  // taken from a shared counter.
  void Run(const std::function<void(size_t worker)>& work) EXCLUDES(mutex_);

  // Calls work(begin, end) for parts of [0, count) of at most `part` items, in parallel.
  void ForEachPart(size_t count, size_t part, const std::function<void(size_t begin, size_t end)>& work)
      EXCLUDES(mutex_);

 private:
  void Serve(size_t worker);

  Mutex mutex_;
  CondVar changed_, finished_;
  const std::function<void(size_t)>* work_ GUARDED_BY(mutex_) = nullptr;
  uint64_t round_ GUARDED_BY(mutex_) = 0;
  size_t running_ GUARDED_BY(mutex_) = 0;
  bool busy_ GUARDED_BY(mutex_) = false, stopped_ GUARDED_BY(mutex_) = false;

  std::vector<std::jthread> threads_;
};

}  // namespace weir::identity
