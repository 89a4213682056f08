#include "load/cluster/timed_watch.h"

#include <algorithm>

#include "base/thread.h"

namespace weir::load {
namespace {

constexpr Duration kLook = 20ms;

// Returns false if it was stopped before.
bool WaitUntil(Instant at, const Clock& clock, const std::stop_token& over) {
  while (!over.stop_requested()) {
    const Instant now = clock.Now();
    if (now >= at) return true;
    SleepUntil(std::min(at, now + kLook));
  }
  return false;
}

}  // namespace

TimedWatch::TimedWatch(const monitor::ServerPlace& place, const monitor::ServerAccess& access, Instant from,
                       Instant to, const Clock& clock)
    : thread_(
          StartThread("load-watch", [this, &place, &access, from, to, &clock](const std::stop_token& over) {
            if (!WaitUntil(from, clock, over)) return;
            auto watch = monitor::ServerWatch::Start(place, access, clock);
            if (!watch) {
              watched_ = std::unexpected(watch.error());
              return;
            }
            (void)WaitUntil(to, clock, over);
            seen_ = watch->Stop();
          })) {}

Result<std::optional<monitor::Resources>> TimedWatch::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  TRY_STATUS(watched_);
  return seen_;
}

}  // namespace weir::load
