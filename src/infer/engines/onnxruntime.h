// ONNX Runtime on the CPU, through its C API.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "infer/engine.h"

namespace weir::infer {

// kNotFound when the library is not here, kUnsupported when it is too old. Models compute at the precision
// they declare, so any other than "f32" is kUnsupported. Strings are copied in and out; a tensor of them has
// the limits of strings.h. `cache_dir` says nothing to it: it keeps no compiled models. `clock` must outlive
// the sessions.
Result<std::unique_ptr<Engine>> OpenOnnxRuntime(const Clock& clock);

}  // namespace weir::infer
