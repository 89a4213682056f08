// Parallel loops whose results depend on the index alone, not on the number of threads.
#pragma once

#include <cstdint>
#include <functional>

namespace weir::predict {

// Calls body(0) to body(count - 1), each once, on up to `threads` threads named "predict-N" (the caller's own
// for one), and blocks until all are done. `body` must not throw.
void ForEach(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace weir::predict
