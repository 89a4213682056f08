// ONNX Runtime on NVIDIA's GPUs, through its C API and its CUDA provider.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/engine.h"

namespace weir::infer {

// Checks driver, devices and libraries in this order, and opens the libraries. Its sessions compute every
// node on the GPU: a model that has others is refused, with their names. f32 computes without TF32; "tf32" is
// for itself; "f16" and "bf16" are of a model whose graph was rewritten (ModelSource::onnx). Each of its
// devices has as many instances as SessionOptions::streams, and the instance that has been free longest takes
// the next batch. `clock` must outlive the sessions.
Result<std::unique_ptr<Engine>> OpenOrtCuda(const Clock& clock, const std::vector<Device>& devices);

}  // namespace weir::infer
