#include "probe/storage_watch.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::probe {
namespace {

const Error kHung{ErrorCode::kDeadline, "it hangs"};

const SteadyClock& TheClock() {
  static const SteadyClock clock;
  return clock;
}

TEST(RunWatched, ReturnsWhatTheWorkReturns) {
  const auto done = RunWatched<std::unique_ptr<int>>(
      [](const Moved&) -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); }, 10s, kHung,
      TheClock());
  ASSERT_TRUE(done);
  EXPECT_EQ(**done, 5);
  const auto failed = RunWatched<int>(
      [](const Moved&) -> Result<int> { return Fail(ErrorCode::kIo, "full"); }, 10s, kHung, TheClock());
  EXPECT_EQ(failed.error().message, "full");
}

// The state that a thread left behind still uses.
struct Gate {
  Mutex mutex;
  CondVar changed;
  bool open GUARDED_BY(mutex) = false;
  bool left GUARDED_BY(mutex) = false;
};

TEST(RunWatched, LeavesWorkBehindThatDoesNotMove) {
  const auto gate = std::make_shared<Gate>();
  const auto hung = RunWatched<int>(
      [gate](const Moved& moved) -> Result<int> {
        moved(TheClock().Now());
        const MutexLock lock(gate->mutex);
        while (!gate->open) gate->changed.Wait(gate->mutex);
        gate->left = true;
        gate->changed.NotifyAll();
        return 1;
      },
      20ms, kHung, TheClock());
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code, ErrorCode::kDeadline);
  const MutexLock lock(gate->mutex);
  gate->open = true;
  gate->changed.NotifyAll();
  while (!gate->left) gate->changed.Wait(gate->mutex);
}

TEST(RunWatched, WaitsWhileTheWorkMeansToRest) {
  const auto gate = std::make_shared<Gate>();
  const auto done = RunWatched<int>(
      [gate](const Moved& moved) -> Result<int> {
        moved(TheClock().Now() + 1h);  // far beyond the timeout below
        const MutexLock lock(gate->mutex);
        gate->changed.WaitUntil(gate->mutex, TheClock().Now() + 100ms);
        return 7;
      },
      1ms, kHung, TheClock());
  ASSERT_TRUE(done);
  EXPECT_EQ(*done, 7);
}

}  // namespace
}  // namespace weir::probe
