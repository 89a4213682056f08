// A watch on a server for the measured time of a run that others play.
#pragma once

#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/server_watch.h"

namespace weir::load {

// Watches between two instants. Thread: "load-watch". One thread at a time.
class TimedWatch {
 public:
  // `to`: Instant::max() where only Stop ends it. `place` as monitor::FindServer left it; the references must
  // outlive the watch.
  TimedWatch(const monitor::ServerPlace& place, const monitor::ServerAccess& access, Instant from, Instant to,
             const Clock& clock);
  // Ends the watch, and returns what it saw; nullopt if it had not begun. The errors are those of
  // ServerWatch::Start.
  Result<std::optional<monitor::Resources>> Stop();

 private:
  std::optional<monitor::Resources> seen_;
  Status watched_;
  std::jthread thread_;  // the last member: it ends first
};

}  // namespace weir::load
