#include "launch/network/variable_rate.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"

namespace weir::launch {

VariableRate::VariableRate(SetRate set_rate, RateSchedule schedule, Instant begin, const Clock& clock)
    : set_rate_(std::move(set_rate)),
      schedule_(std::move(schedule)),
      begin_(begin),
      clock_(clock),
      report_(Report{}) {}

Result<std::unique_ptr<VariableRate>> VariableRate::Start(SetRate set_rate, RateSchedule schedule,
                                                          Instant begin, const Clock& clock) {
  std::unique_ptr<VariableRate> rate(
      new VariableRate(std::move(set_rate), std::move(schedule), begin, clock));
  TRY_STATUS(rate->set_rate_(rate->schedule_.RateAt(clock.Now() - begin)));
  rate->thread_ = StartThread("link", [r = rate.get()](const std::stop_token&) { r->Drive(); });
  return rate;
}

VariableRate::~VariableRate() { (void)Stop(); }

bool VariableRate::WaitUntil(Instant when) {
  MutexLock lock(mutex_);
  while (!stopping_ && clock_.Now() < when) changed_.WaitUntil(mutex_, when);
  return !stopping_;
}

void VariableRate::Drive() {
  Instant last = clock_.Now();
  while (true) {
    const Instant next = begin_ + schedule_.NextChange(last - begin_);
    if (!WaitUntil(next)) return;
    last = std::max(next, clock_.Now());  // a change that came too late altogether is not made up for
    const Status set = set_rate_(schedule_.RateAt(last - begin_));
    if (!set) {
      report_ = std::unexpected(set.error());
      return;
    }
    ++report_->changes;
    report_->latest = std::max(report_->latest, last - next);
  }
}

Result<VariableRate::Report> VariableRate::Stop() {
  if (stopped_) return report_;
  stopped_ = true;
  if (!thread_.joinable()) return report_;  // it never began
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  const Status set = set_rate_(schedule_.mean_gbit_per_s());
  if (!set && report_) report_ = std::unexpected(set.error());
  return report_;
}

}  // namespace weir::launch
