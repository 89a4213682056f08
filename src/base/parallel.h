// Parallel loops whose results depend on the index alone, not on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir {

// Calls body(0) to body(count - 1), each once, on up to `threads` threads named "NAME-0" and so on (the
// caller's own for one), and blocks until all are done. `body` must not throw.
void ParallelFor(std::string_view name, int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace weir
