// Time. `Instant` is on a tag of our own, so mixing it with wall time does not compile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace weir {

using namespace std::chrono_literals;  // NOLINT: durations are written 500us everywhere
using Duration = std::chrono::nanoseconds;

struct SteadyTag {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyTag, Duration>;
  static constexpr bool is_steady = true;
};
// A moment on the monotonic clock (CLOCK_MONOTONIC) of this host.
using Instant = SteadyTag::time_point;

inline double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline double Milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
inline double Microseconds(Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
inline Duration FromSeconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

// Thread-safe. The program holds one SteadyClock; tests hold a ManualClock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Instant Now() const override;
};

// Stands still until told to move.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Instant now = Instant(1s)) : now_(now.time_since_epoch().count()) {}
  Instant Now() const override { return Instant(Duration(now_.load())); }
  void Advance(Duration d) { now_.fetch_add(d.count()); }

 private:
  std::atomic<Duration::rep> now_;
};

// CPU time of the calling thread, and of the whole process, so far.
Duration ThreadCpuTime();
Duration ProcessCpuTime();

// Wall time as a label for records, UTC, "2026-11-21T08:20:06Z". Never subtract two of these.
std::string WallTimeLabel();

// Wall time since 1970, for what the kernel stamps in it: it may be stepped at any moment.
Duration WallTime();

// Blocks the calling thread until the monotonic clock reaches `when`; returns at once if it has passed.
void SleepUntil(Instant when);

}  // namespace weir
