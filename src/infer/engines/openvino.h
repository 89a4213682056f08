// OpenVINO on the CPU, through its C API.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "infer/engine.h"

namespace weir::infer {

// kNotFound when the library is not here. Its own choice of precision would be bf16 where the CPU has it, so
// the one asked for is always set; kUnsupported where this CPU does not have it, and for tensors of strings.
// `clock` must outlive the sessions.
Result<std::unique_ptr<Engine>> OpenOpenVino(const Clock& clock);

}  // namespace weir::infer
