#include "trial/quiet.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::trial {
namespace {

// A machine of two cores of which others use a share, one value for each second; the last one lasts.
class Machine {
 public:
  explicit Machine(std::vector<double> busy_cores) : busy_(std::move(busy_cores)) {}

  QuietWait::Options Options(Duration budget) {
    return {.budget = budget,
            .read = [this]() -> std::optional<monitor::MachineStat> { return stat_; },
            .sleep_until = [this](Instant when) { Advance(when); }};
  }
  const ManualClock& clock() const { return clock_; }
  int seconds() const { return seconds_; }

 private:
  void Advance(Instant when) {
    const double busy = busy_[std::min(static_cast<size_t>(seconds_), busy_.size() - 1)];
    ++seconds_;
    stat_.busy += FromSeconds(busy);
    stat_.idle += FromSeconds(2 - busy);
    clock_.Advance(when - clock_.Now());
  }
  std::vector<double> busy_;
  monitor::MachineStat stat_;
  ManualClock clock_;
  int seconds_ = 0;
};

TEST(QuietWait, WaitsUntilOthersAreDone) {
  Machine machine({1.8, 1.2, 0.5, 0.02});
  QuietWait wait(machine.Options(10min), machine.clock());
  EXPECT_TRUE(wait.Wait({}));
  EXPECT_EQ(machine.seconds(), 4);
  EXPECT_EQ(wait.left(), 10min - 3s);
}

TEST(QuietWait, GivesUpWhenTheBudgetOfAllTrialsIsSpent) {
  Machine machine({1.8});
  QuietWait wait(machine.Options(5s), machine.clock());
  EXPECT_FALSE(wait.Wait({}));
  EXPECT_EQ(machine.seconds(), 5);
  EXPECT_EQ(wait.left(), Duration{});
  EXPECT_EQ(wait.seen(), "others use 1.8 of 2 cores, the hypervisor takes 0 %");
  EXPECT_FALSE(wait.Wait({}));
  EXPECT_EQ(machine.seconds(), 5);  // nothing left to wait with
}

TEST(QuietWait, EndsWithAStop) {
  Machine machine({1.8});
  QuietWait wait(machine.Options(1h), machine.clock());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(wait.Wait(stop.get_token()));
  EXPECT_EQ(machine.seconds(), 0);
}

}  // namespace
}  // namespace weir::trial
