// Copies memory that another process may take away at any moment.
#pragma once

#include <cstddef>

namespace weir::serve {

// From now on, for the whole process, a GuardedCopy may meet memory that is gone. Does so once.
void GuardCopies();

// Copies, or returns false when pages of `from` or `to` are no longer backed (a shared file that was cut).
// REQUIRES: GuardCopies() before.
bool GuardedCopy(void* to, const void* from, size_t size);

}  // namespace weir::serve
