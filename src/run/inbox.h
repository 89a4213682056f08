// The messages of the application's threads to the one that ranks and reports, in the order in which they
// come.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "base/mutex.h"
#include "image/reject.h"
#include "infer/service.h"
#include "run/assembly.h"

namespace weir::run {

// A batch that was answered, or that failed.
struct BatchDone {
  BatchPtr batch;
  std::optional<size_t> alone;  // the place of the only picture that was sent; none: all
  Result<infer::Response> response;
  infer::Times times;
  Instant answered;
};
struct Rejected {
  int64_t index = 0;
  image::Reject reject;
};
struct FeedDone {};  // a loader, or the feeder, has ended
using Event = std::variant<BatchDone, Rejected, FeedDone>;

// A queue without a bound: the batches in flight bound it. Any thread.
class Inbox {
 public:
  void Push(Event event) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    arrived_.NotifyOne();
  }
  // Blocks until there is an event.
  Event Pop() {
    MutexLock lock(mutex_);
    while (events_.empty()) arrived_.Wait(mutex_);
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace weir::run
