// The few declarations of NVIDIA's public header cuda.h that are used here, by the same names less their
// prefix. https://docs.nvidia.com/cuda/cuda-driver-api/
#pragma once

#include <cstddef>

namespace weir::gpu::cuda {

using Return = int;  // CUresult
using DeviceHandle = int;
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using Address = unsigned long long;  // CUdeviceptr
struct Uuid {
  unsigned char bytes[16];
};
struct IpcMemory {  // CUipcMemHandle
  char bytes[64];
};

constexpr Return kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101,
                 kInvalidImage = 200, kNoBinaryForGpu = 209, kEccUncorrectable = 214, kNotFound = 500,
                 kNotReady = 600, kIllegalAddress = 700, kLaunchTimeout = 702, kAssert = 710,
                 kHardwareStackError = 714, kIllegalInstruction = 715, kMisalignedAddress = 716,
                 kInvalidAddressSpace = 717, kInvalidPc = 718, kLaunchFailed = 719,
                 kNvlinkUncorrectable = 220, kContained = 226, kContextIsDestroyed = 709;
// Answers of a driver library without a driver, and of a driver that is too old for a library.
constexpr Return kStubLibrary = 34, kDriverTooOld = 35, kUnknown = 999;

constexpr int kComputeMajor = 75, kComputeMinor = 76;  // CUdevice_attribute
constexpr int kMemoryType = 2;                         // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kHostMemory = 1;                    // CU_MEMORYTYPE_HOST: pinned
constexpr unsigned kBlockingSync = 4;                  // CU_CTX_SCHED_BLOCKING_SYNC
constexpr unsigned kNonBlocking = 1;                   // CU_STREAM_NON_BLOCKING
constexpr unsigned kEventBlockingSync = 1;             // CU_EVENT_BLOCKING_SYNC
constexpr unsigned kLazyPeerAccess = 1;                // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

}  // namespace weir::gpu::cuda

// The functions that a Driver finds: the member, the exported name, and the parameters.
#define WEIR_CUDA_FUNCTIONS(X)                                                                              \
  X(init, "cuInit", (unsigned flags))                                                                       \
  X(driver_version, "cuDriverGetVersion", (int* version))                                                   \
  X(device_count, "cuDeviceGetCount", (int* count))                                                         \
  X(device_get, "cuDeviceGet", (cuda::DeviceHandle * device, int ordinal))                                  \
  X(device_name, "cuDeviceGetName", (char* name, int size, cuda::DeviceHandle device))                      \
  X(device_uuid, "cuDeviceGetUuid", (cuda::Uuid * uuid, cuda::DeviceHandle device))                         \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t* bytes, cuda::DeviceHandle device))                       \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, cuda::DeviceHandle device))       \
  X(device_pci, "cuDeviceGetPCIBusId", (char* text, int size, cuda::DeviceHandle device))                   \
  X(primary_flags, "cuDevicePrimaryCtxSetFlags_v2", (cuda::DeviceHandle device, unsigned flags))            \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (cuda::ContextHandle * context, cuda::DeviceHandle device)) \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", (cuda::DeviceHandle device))                           \
  X(set_current, "cuCtxSetCurrent", (cuda::ContextHandle context))                                          \
  X(synchronize, "cuCtxSynchronize", ())                                                                    \
  X(memory_info, "cuMemGetInfo_v2", (size_t* free_bytes, size_t* all_bytes))                                \
  X(allocate, "cuMemAlloc_v2", (cuda::Address * address, size_t bytes))                                     \
  X(free, "cuMemFree_v2", (cuda::Address address))                                                          \
  X(pointer_attribute, "cuPointerGetAttribute", (void* value, int attribute, cuda::Address pointer))        \
  X(address_range, "cuMemGetAddressRange_v2", (cuda::Address * base, size_t* bytes, cuda::Address address)) \
  X(allocate_host, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags))                         \
  X(free_host, "cuMemFreeHost", (void* memory))                                                             \
  X(upload, "cuMemcpyHtoDAsync_v2",                                                                         \
    (cuda::Address to, const void* from, size_t bytes, cuda::StreamHandle stream))                          \
  X(download, "cuMemcpyDtoHAsync_v2",                                                                       \
    (void* to, cuda::Address from, size_t bytes, cuda::StreamHandle stream))                                \
  X(stream_create, "cuStreamCreate", (cuda::StreamHandle * stream, unsigned flags))                         \
  X(stream_destroy, "cuStreamDestroy_v2", (cuda::StreamHandle stream))                                      \
  X(stream_synchronize, "cuStreamSynchronize", (cuda::StreamHandle stream))                                 \
  X(event_create, "cuEventCreate", (cuda::EventHandle * event, unsigned flags))                             \
  X(event_destroy, "cuEventDestroy_v2", (cuda::EventHandle event))                                          \
  X(event_record, "cuEventRecord", (cuda::EventHandle event, cuda::StreamHandle stream))                    \
  X(event_synchronize, "cuEventSynchronize", (cuda::EventHandle event))                                     \
  X(event_elapsed, "cuEventElapsedTime",                                                                    \
    (float* milliseconds, cuda::EventHandle from, cuda::EventHandle to))                                    \
  X(module_load, "cuModuleLoadData", (cuda::ModuleHandle * module, const void* image))                      \
  X(module_unload, "cuModuleUnload", (cuda::ModuleHandle module))                                           \
  X(module_function, "cuModuleGetFunction",                                                                 \
    (cuda::FunctionHandle * function, cuda::ModuleHandle module, const char* name))                         \
  X(launch, "cuLaunchKernel",                                                                               \
    (cuda::FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,    \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda::StreamHandle stream,                  \
     void** parameters, void** extra))                                                                      \
  X(ipc_open, "cuIpcOpenMemHandle_v2", (cuda::Address * address, cuda::IpcMemory handle, unsigned flags))   \
  X(ipc_close, "cuIpcCloseMemHandle", (cuda::Address address))
