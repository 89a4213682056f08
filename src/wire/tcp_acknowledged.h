#pragma once

#include <cstdint>
#include <optional>

namespace weir::wire {

// Bytes that the other side's kernel has acknowledged on this TCP socket since it was opened, the opening
// itself included; also after a reset. Nothing where the kernel does not tell.
std::optional<uint64_t> AcknowledgedBytes(int fd);

}  // namespace weir::wire
