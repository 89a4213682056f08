// An accelerator that is not there: takes the time it is told, on a timer and not on the CPU.
#pragma once

#include <memory>

#include "base/clock.h"
#include "infer/engine.h"
#include "infer/engines/emulated_options.h"

namespace weir::infer {

// Its sessions answer at once where base and per_item are 0. They take their streams from the settings and no
// CPU threads, so those of SessionOptions say nothing to them; a precision other than "f32" is kUnsupported.
// `callers()` is one more than the streams, so that the next batch is there when one ends. They are
// asynchronous: an answer is made inside of Start, and given on their pacing thread when it is due, or at
// once where nothing takes time. `clock` must outlive the sessions; with times above 0 it must be the
// monotonic clock of this host.
std::unique_ptr<Engine> MakeEmulatedEngine(const EmulatedOptions& options, const Clock& clock);

}  // namespace weir::infer
