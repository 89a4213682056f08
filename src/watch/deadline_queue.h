// The order in which waiting frames of all streams are served. Pure policy: no thread, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "watch/frame.h"

namespace weir::watch {

// The time from a frame's being taken to its answer, as a bound that most frames keep: mean plus twice the
// mean deviation, both exponentially smoothed (Jacobson 1988, Congestion Avoidance and Control, appendix A).
// One thread at a time.
class ServiceEstimate {
 public:
  void Add(Duration measured);
  // Lowers the estimate a little. Call it for each frame that was dropped because of the estimate: else an
  // estimate that is too high would drop everything and never be corrected.
  void Relax();
  Duration value() const { return Duration(static_cast<Duration::rep>(mean_ + 2 * deviation_)); }

 private:
  double mean_ = 0, deviation_ = 0;  // nanoseconds
  bool any_ = false;
};

// Frames that wait to be taken, the earliest deadline first. One thread at a time; the owner guards it.
//
// With `latest_only` at most one frame of a stream waits: a newer one takes the place of the older. It also
// takes the older one's position in the order. Otherwise a stream whose frames are replaced faster than they
// are served would never come to the front.
class DeadlineQueue {
 public:
  struct Options {
    bool latest_only = true;
    int max_waiting = 64;  // of one stream; the oldest is superseded beyond it
  };
  struct Entry {
    int64_t id = 0;
    int stream = 0;
    Instant deadline{};
  };
  struct Dropped {
    Entry entry;
    DropCause cause{};
  };

  explicit DeadlineQueue(Options options) : options_(options) {}

  // Adds the frame. Returns the frame whose place it took, if any.
  std::optional<Dropped> Offer(const Entry& entry);
  // Takes the frame with the earliest deadline among streams that are not `busy`. Frames that cannot be done
  // by their deadline, at now + expected, are dropped on the way: kLate if the deadline has passed, else
  // kExpired.
  std::optional<Entry> Take(Instant now, Duration expected, const std::set<int>& busy,
                            std::vector<Dropped>& dropped);
  // Removes all frames, for a program that ends.
  std::vector<Dropped> Clear();
  int size() const { return static_cast<int>(waiting_.size()); }

 private:
  struct Waiting {
    Entry entry;
    Instant order{};  // the deadline that decides its turn
  };
  const Options options_;
  std::vector<Waiting> waiting_;  // in the order of Offer
};

}  // namespace weir::watch
