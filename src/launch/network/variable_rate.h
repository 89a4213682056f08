// A link whose rate changes by a schedule.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "launch/network/rate_schedule.h"

namespace weir::launch {

// Sets the rate that a schedule names whenever it changes, from `begin` on, on a thread of its own, "link".
class VariableRate {
 public:
  // Sets a rate in Gbit/s; NetworkLink::SetRate in the program. Called by one thread at a time.
  using SetRate = std::function<Status(double)>;

  // Sets the first rate before it returns; fails where that does. `set_rate` and `clock` are used until Stop.
  static Result<std::unique_ptr<VariableRate>> Start(SetRate set_rate, RateSchedule schedule, Instant begin,
                                                     const Clock& clock);
  ~VariableRate();  // Stop

  // How often the rate was set, and the longest delay of one after its moment.
  struct Report {
    int64_t changes = 0;
    Duration latest{};
  };
  // Ends it, and leaves the link at the schedule's mean rate. The first error of a change, which ended it
  // early: then the rates were not those of the schedule. Again: the same.
  Result<Report> Stop();

  const RateSchedule& schedule() const { return schedule_; }
  Instant begin() const { return begin_; }

 private:
  VariableRate(SetRate set_rate, RateSchedule schedule, Instant begin, const Clock& clock);
  void Drive();
  bool WaitUntil(Instant when);  // false: asked to stop

  const SetRate set_rate_;
  const RateSchedule schedule_;
  const Instant begin_;
  const Clock& clock_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;

  Result<Report> report_;  // the thread's, then Stop's
  bool stopped_ = false;   // Stop's
  std::jthread thread_;
};

}  // namespace weir::launch
