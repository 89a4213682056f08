// Work that writes, on a thread of its own, so that a write that never ends does not hold its caller.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace weir::probe {

// Says that the work has moved, and means to rest until `until` at most.
using Moved = std::function<void(Instant until)>;

// Runs `work`, which calls `moved` after each piece. Returns `hung` once nothing has moved for `timeout`: the
// thread is left behind, and all that `work` refers to must outlive it. Blocks.
template <typename T>
Result<T> RunWatched(std::move_only_function<Result<T>(const Moved& moved)> work, Duration timeout,
                     const Error& hung, const Clock& clock) {
  struct State {
    Mutex mutex;
    CondVar changed;
    Instant until GUARDED_BY(mutex){};
    std::optional<Result<T>> done GUARDED_BY(mutex);
  };
  const auto state = std::make_shared<State>();
  {
    const MutexLock lock(state->mutex);
    state->until = clock.Now();
  }
  std::jthread thread = StartThread("writer", [state, run = std::move(work)](const std::stop_token&) mutable {
    auto done = run([&](Instant until) {
      const MutexLock lock(state->mutex);
      state->until = until;
    });
    const MutexLock lock(state->mutex);
    state->done.emplace(std::move(done));
    state->changed.NotifyAll();
  });
  constexpr Duration kLook = 50ms;
  const MutexLock lock(state->mutex);
  while (!state->done) {
    const Instant now = clock.Now();
    if (now >= state->until + timeout) {
      thread.detach();
      return std::unexpected(hung);
    }
    state->changed.WaitUntil(state->mutex, now + kLook);
  }
  return *std::move(state->done);
}

}  // namespace weir::probe
