// A wish to the scheduler of threads that sleep often and work briefly.
#pragma once

namespace weir {

// Asks the scheduler to let this thread run soon after it wakes (Linux 6.12: a short slice of the fair
// share). Its share of the CPU stays the same. Older kernels have no such wish, and nothing changes there.
void WantShortSlice();

}  // namespace weir
