#include "base/clock.h"

#include <time.h>

#include <cerrno>

#include "base/timespec.h"

namespace weir {
namespace {

Duration Read(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return FromTimespec(t);
}

}  // namespace

Instant SteadyClock::Now() const { return Instant(Read(CLOCK_MONOTONIC)); }

Duration ThreadCpuTime() { return Read(CLOCK_THREAD_CPUTIME_ID); }
Duration ProcessCpuTime() { return Read(CLOCK_PROCESS_CPUTIME_ID); }

Duration WallTime() { return Read(CLOCK_REALTIME); }

std::string WallTimeLabel() {
  const time_t now = ::time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, size);
}

void SleepUntil(Instant when) {
  const timespec t = ToTimespec(when.time_since_epoch());
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

}  // namespace weir
