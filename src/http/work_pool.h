// Threads for work that would hold an event loop up, such as parsing large bodies.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace weir::http {

// A few threads behind a bounded queue. Begins work in the order in which it was offered. Thread-safe.
class WorkPool {
 public:
  using Work = std::move_only_function<void()>;
  struct Options {
    std::string name;          // of its threads: "NAME-N"
    int threads = 2;           // at least 1
    size_t max_waiting = 256;  // works that wait; those under way do not count
  };
  explicit WorkPool(Options options);
  ~WorkPool() { Stop(); }

  // Takes `work` and returns true; leaves it with the caller and returns false if the queue is full or the
  // pool has stopped.
  [[nodiscard]] bool Offer(Work& work);
  // Finishes what waits and ends the threads. Not to be called from one of them.
  void Stop();

 private:
  void Run(const std::stop_token& stop);

  const size_t max_waiting_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Work> waiting_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;

  std::vector<std::jthread> threads_;
};

}  // namespace weir::http
