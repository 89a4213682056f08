// Locks that clang's -Wthread-safety can check. Every lock in the program is one of these, with GUARDED_BY
// on what it guards. No callback runs under a lock.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define WEIR_ANNOTATE(x) __attribute__((x))
#else
#define WEIR_ANNOTATE(x)
#endif
#define CAPABILITY(x) WEIR_ANNOTATE(capability(x))
#define SCOPED_CAPABILITY WEIR_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) WEIR_ANNOTATE(guarded_by(x))
#define REQUIRES(...) WEIR_ANNOTATE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) WEIR_ANNOTATE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) WEIR_ANNOTATE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) WEIR_ANNOTATE(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS WEIR_ANNOTATE(no_thread_safety_analysis)

namespace weir {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Wakes threads that wait for a change of what a Mutex guards. Call the waits in a loop that tests the
// condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `when` came first.
  bool WaitUntil(Mutex& mutex, Instant when) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const std::chrono::steady_clock::time_point steady(when.time_since_epoch());  // both are CLOCK_MONOTONIC
    const bool in_time = cv_.wait_until(lock, steady) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace weir
