// How a session's CPU threads are shared out.
#pragma once

#include "base/error.h"
#include "infer/engine.h"

namespace weir::infer {

struct ThreadShare {
  int threads = 1;  // in all
  int streams = 1;  // side by side; at most `threads`
};
// Returns the threads and streams that SessionOptions ask for, within `usable` CPUs: 0 threads is all of
// them, 0 streams one per thread, and more than there are is as many as there are. kInvalidArgument for
// negative numbers.
Result<ThreadShare> ShareThreads(const SessionOptions& options, int usable);

}  // namespace weir::infer
