// When the next answer is likely to come: a thread that sleeps is woken late, by tenths of a millisecond on
// an idle core of a virtual machine. Where nobody stamps an answer's arrival what it times is that much too
// long, and in a closed loop what it sends next leaves that much later. So it should be awake by then.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace weir::load {

// Predicts when the next response arrives, if responses arrive in about the order of the requests and each
// takes about as long as the ones before it. If they do not, or if spinning takes more than an eighth of the
// time, it predicts nothing. One thread.
class CompletionPredictor {
 public:
  // Around the likely moment: from when on a thread should not sleep, for a sleep ends that much late, and
  // how long it should wait awake.
  static constexpr Duration kBefore = 400us, kAfter = 150us;

  void Sent(Instant at) { sent_.push_back(at); }
  // Records the end of the request that was sent at `at`. `answered`: it tells how long one takes.
  void Ended(Instant at, Instant now, bool answered);
  // Records how long the thread spun around one predicted moment.
  void Waited(Duration awake) { awake_.Add(awake); }
  // The likely moment of the next answer; nothing where that is over by kAfter.
  std::optional<Instant> Next(Instant now) const;

 private:
  // The latest of some durations.
  class Latest {
   public:
    static constexpr size_t kCount = 16;

    void Add(Duration duration) { ring_[count_++ % kCount] = duration; }
    bool full() const { return count_ >= kCount; }
    std::array<Duration, kCount> Sorted() const;

   private:
    std::array<Duration, kCount> ring_{};
    size_t count_ = 0;
  };

  std::deque<Instant> sent_;  // of requests that are out; which of them ended does not matter
  Latest took_, awake_;
};

}  // namespace weir::load
