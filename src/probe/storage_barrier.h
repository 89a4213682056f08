// The meeting of several hosts before each step of a training run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"

namespace weir::probe {

// Lets a step begin on all hosts once its data are whole on each. Implemented by a connection between hosts,
// and by fakes. Thread-safe.
class StepBarrier {
 public:
  // Called for each step, in order. `at` is the moment on this host's clock at which the data of the step
  // were whole on every host. `last`: a host wants no step after it.
  using Passed = std::function<void(int64_t step, Instant at, bool last)>;

  virtual ~StepBarrier() = default;
  // Begins a run. `passed` may be called on any thread, but not within a call of Arrive, and not under a lock
  // that Arrive takes.
  virtual void Start(Passed passed) = 0;
  // Says that the data of `step` are whole on this host. Called for each step from 0 on, in order. `last`:
  // this host wants no step after it. Never blocks. Steps after the last one may arrive and count for
  // nothing.
  virtual void Arrive(int64_t step, bool last) = 0;
  // Ends the run. After it returns, `passed` is not called any more.
  virtual void Finish() = 0;
};

// The share that one host has of a run on several. All hosts have the same set, seed, batch and number of
// accelerators. Step s takes the positions [s * g, (s + 1) * g) of the one global order, where g is the batch
// of all hosts; host r takes the r-th of `world` equal parts of them.
struct HostShare {
  int rank = 0, world = 1;
  std::shared_ptr<StepBarrier> barrier;  // null: the host goes on without the others
  std::optional<Instant> begin;          // no read begins before it
};

}  // namespace weir::probe
