// A stream's time and order: wall time to this host's monotonic clock, and the stream's counters. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"

namespace weir::watch {

// Both clocks at one moment.
struct ClockReading {
  Instant steady{};
  Duration wall{};
};
// Reads both clocks. On a busy machine the thread may lose its core between the two reads, so it tries again
// and takes the pair with the least time between.
ClockReading ReadClocks(const Clock& clock);

// The difference between wall time and the monotonic clock. Capture times come in wall time; deadlines are on
// the monotonic clock. Both are read again and again, since wall time may drift or be stepped. One thread at
// a time.
class ClockOffset {
 public:
  // Notes that both clocks were read at the same moment. Call it about once a frame.
  void Note(Instant steady, Duration wall);
  // REQUIRES: a Note.
  Instant ToSteady(Duration wall) const { return Instant(wall - offset_); }

  struct Report {
    double offset_change_ms = 0;      // from the first Note to the last
    std::optional<double> drift_ppm;  // of wall time against the monotonic clock; absent below 3 s
    int64_t steps = 0;                // jumps of more than 1 ms between two Notes
    double largest_step_ms = 0;
  };
  Report report() const;

 private:
  Duration offset_{}, first_{};
  std::optional<Instant> last_;
  Instant kept_{};
  int64_t steps_ = 0;
  Duration largest_{};
  std::vector<double> seconds_, offsets_;  // one pair a second, for the drift; at most an hour
};

// Follows the counters of one stream. One thread at a time.
class CounterCheck {
 public:
  enum class Order { kNext, kOutOfOrder, kRepeated };
  struct Found {
    Order order = Order::kNext;
    int64_t lost = 0;        // frames missing before this one
    bool recovered = false;  // this one had been counted as lost before
    // The sender's clock jumped by this much against its own counter.
    std::optional<Duration> clock_step;
    bool restarted = false;  // the sender counts from the beginning again
  };
  struct Stamp {
    uint32_t counter = 0;
    Duration captured{};  // wall time
    Instant arrived{};
  };
  // Notes a frame that was decoded. `skipped`: frames of this stream that arrived since the last one and were
  // not decoded, so their counters are not known. A clock has jumped where the capture times advance neither
  // as the arrivals do nor as the counter's period says: a slow way changes only the arrivals, and an uneven
  // camera changes both.
  Found Note(const Stamp& stamp, int64_t skipped);

 private:
  static constexpr size_t kMostMissing = 1024;
  std::optional<int64_t> last_;
  Duration last_captured_{};
  Instant last_arrived_{};
  std::optional<double> period_ns_;
  std::set<int64_t> missing_;
};

}  // namespace weir::watch
