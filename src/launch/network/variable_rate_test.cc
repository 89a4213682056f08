#include "launch/network/variable_rate.h"

#include <gmock/gmock.h>

#include <vector>

namespace weir::launch {
namespace {

RateSchedule Fast() {
  auto schedule = RateSchedule::Create({.shortest = 1ms, .longest = 4ms, .length = 1s});
  return std::move(*schedule);
}

// Records the rates that were set; a thread can wait for them.
class Recorder {
 public:
  Status Set(double rate) {
    MutexLock lock(mutex_);
    if (set_.size() == fail_at_) return Fail(ErrorCode::kIo, "no such device");
    set_.push_back(rate);
    changed_.NotifyAll();
    return {};
  }
  void WaitFor(size_t count) {
    MutexLock lock(mutex_);
    while (set_.size() < count) changed_.Wait(mutex_);
  }
  std::vector<double> Rates() {
    MutexLock lock(mutex_);
    return set_;
  }
  void FailAt(size_t count) {
    MutexLock lock(mutex_);
    fail_at_ = count;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<double> set_ GUARDED_BY(mutex_);
  size_t fail_at_ GUARDED_BY(mutex_) = SIZE_MAX;
};

TEST(VariableRate, SetsRatesOfTheScheduleInItsOrderAndTheMeanAtTheEnd) {
  const SteadyClock clock;
  Recorder link;
  const RateSchedule schedule = Fast();
  auto rate = VariableRate::Start([&](double r) { return link.Set(r); }, schedule, clock.Now() + 5ms, clock);
  ASSERT_TRUE(rate.has_value()) << rate.error().message;
  link.WaitFor(20);
  const auto report = (*rate)->Stop();
  ASSERT_TRUE(report.has_value()) << report.error().message;

  const std::vector<double> set = link.Rates();
  EXPECT_EQ(set.front(), schedule.RateAt(0s)) << "before Start returned";
  EXPECT_EQ(set.back(), 5);
  EXPECT_EQ(report->changes, std::ssize(set) - 2) << "the first and the last are not the thread's";
  EXPECT_GE(report->latest, Duration::zero());
  size_t at = 0;  // in a busy moment one may be passed over, but never taken out of order
  for (size_t i = 0; i + 1 < set.size(); ++i) {
    const size_t before = at;
    while (schedule.steps()[at % schedule.steps().size()].gbit_per_s != set[i]) {
      ++at;
      ASSERT_LT(at, before + schedule.steps().size()) << set[i] << " is no rate of the schedule";
    }
  }
}

TEST(VariableRate, BeginsWhereTheScheduleIsByNow) {
  const SteadyClock clock;
  Recorder link;
  const auto slow = RateSchedule::Create({.shortest = 1000s, .longest = 1000s, .length = 4000s});
  ASSERT_TRUE(slow.has_value());
  auto rate = VariableRate::Start([&](double r) { return link.Set(r); }, *slow, clock.Now() - 2500s, clock);
  ASSERT_TRUE(rate.has_value());
  EXPECT_EQ(link.Rates(), std::vector<double>{slow->steps()[2].gbit_per_s});
}

TEST(VariableRate, TellsOfALinkThatCannotBeSet) {
  const SteadyClock clock;
  Recorder link;
  link.FailAt(0);
  auto none = VariableRate::Start([&](double r) { return link.Set(r); }, Fast(), clock.Now(), clock);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().message, "no such device");

  link.FailAt(3);
  auto rate = VariableRate::Start([&](double r) { return link.Set(r); }, Fast(), clock.Now(), clock);
  ASSERT_TRUE(rate.has_value());
  link.WaitFor(3);
  EXPECT_FALSE((*rate)->Stop().has_value()) << "a change failed, or the mean could not be set: both are told";
  EXPECT_EQ((*rate)->Stop().error().message, "no such device") << "again: the same";
}

}  // namespace
}  // namespace weir::launch
