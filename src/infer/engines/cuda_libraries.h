// ONNX Runtime for CUDA and NVIDIA's libraries beneath it: found, checked against driver and card, opened.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/driver.h"
#include "infer/device.h"
#include "infer/engines/cuda_code.h"
#include "infer/engines/shared_library.h"

namespace weir::infer {

// The devices that `wanted` names, as CUDA counts them. kInvalidArgument for one that is not there, with
// those that are.
Result<std::vector<int>> FindCudaDevices(const gpu::Driver& driver, const std::vector<Device>& wanted);

// Whether the driver serves the CUDA that a library is linked to, and the card runs its kernels. kUnsupported
// says what mends it.
Status CheckDriver(int driver_version, int cuda_major);
Status CheckCard(const gpu::DeviceFacts& card, const CudaLibraryFacts& library);

struct CudaLibraries {
  SharedLibrary onnxruntime;
  CudaLibraryFacts facts;
};
// Looks in the folder that the environment variable WEIR_CUDA names, or else in ../lib/weir/cuda beside the
// program and in .deps/cuda of this checkout, and for NVIDIA's libraries then on the system's path. Each is
// checked before anything is opened, for the given devices. kNotFound names what is missing and its remedy.
Result<CudaLibraries> OpenCudaLibraries(const gpu::Driver& driver, const std::vector<int>& ordinals);

}  // namespace weir::infer
