// Batches in memory of the host that a GPU reads by itself.
#pragma once

#include <memory>

#include "base/error.h"
#include "feed/batch.h"

namespace weir::python {

// Makes buffers in the primary context of device `ordinal`, which torch and other libraries of the process
// use as well. kNotFound without NVIDIA's driver, kInvalidArgument without this device.
Result<std::shared_ptr<feed::BatchMemory>> PinnedMemory(int ordinal);

}  // namespace weir::python
