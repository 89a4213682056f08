#include "gpu/testing/fake_cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/cuda_api.h"
#include "gpu/normalise.h"

namespace cuda = weir::gpu::cuda;

namespace weir::gpu::cuda {
struct StreamTag {
  int device = 0;
};
struct EventTag {
  double at_ms = -1;
};
struct ModuleTag {
  std::string text;
};
struct FunctionTag {
  std::string name;
};
struct ContextTag {
  int device = 0;
};
}  // namespace weir::gpu::cuda

namespace {

std::mutex mutex;                                             // held by every function that changes something
std::map<unsigned long long, size_t> pinned;                  // memory of the host: its size
std::map<unsigned long long, std::pair<int, size_t>> blocks;  // device memory: its device and size
cuda::ContextTag contexts[4] = {{0}, {1}, {2}, {3}};
cuda::FunctionTag normalise{weir::gpu::kNormaliseKernel};
thread_local int current = 0;
struct Arrival {  // at the host, of what the device had when the copy was asked for
  void* to;
  std::string bytes;
};
std::vector<Arrival> arrivals;

size_t ThisThread() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }
// REQUIRES: the mutex is held.
void Arrive() {
  for (const Arrival& arrival : arrivals) std::memcpy(arrival.to, arrival.bytes.data(), arrival.bytes.size());
  arrivals.clear();
}

void Configure(FakeCudaState& state, std::string_view text) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string part(text.substr(0, comma));
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    const int value = equals == std::string::npos ? 0 : std::atoi(part.c_str() + equals + 1);
    if (key == "count") state.count = value;
    if (key == "version") state.version = value;
    if (key == "init") state.init_error = value;
    if (key == "stuck_after") state.stuck_after = value;
    for (FakeCudaDevice& device : state.devices) {
      if (key == "major") device.major = value;
      if (key == "minor") device.minor = value;
      if (key == "memory_mb") device.memory_total = static_cast<size_t>(value) << 20;
      if (key == "others_mb") device.memory_of_others = static_cast<size_t>(value) << 20;
      if (key == "mig" && value != 0) device.name = "Fake H200 MIG 1g.18gb";
    }
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
}

FakeCudaState& State() {
  static FakeCudaState state = [] {
    FakeCudaState made;
    for (int i = 0; i < 4; ++i) made.devices[i].uuid_first = static_cast<unsigned char>(0x10 + i);
    if (const char* text = std::getenv("WEIR_FAKE_CUDA")) Configure(made, text);
    return made;
  }();
  return state;
}

bool Has(int device) { return device >= 0 && device < State().count; }
void Pass(size_t bytes) { State().now_ms += static_cast<double>(bytes) / State().bytes_per_ms; }

template <typename Work>
int Do(Work work) {
  const std::lock_guard lock(mutex);
  if (State().recording_thread != 0 && State().recording_thread != ThisThread()) State().spoilt = true;
  if (State().stuck != 0) return State().stuck;
  return work();
}

}  // namespace

extern "C" {

FakeCudaState* FakeCuda() { return &State(); }

int cuInit(unsigned) { return State().init_error; }
int cuDriverGetVersion(int* version) {
  *version = State().version;
  return cuda::kSuccess;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == cuda::kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == cuda::kNoDevice       ? "CUDA_ERROR_NO_DEVICE"
          : error == cuda::kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                           : nullptr;
  return *name != nullptr ? cuda::kSuccess : cuda::kInvalidValue;
}
int cuGetErrorString(int error, const char** words) {
  *words = error == cuda::kOutOfMemory      ? "out of memory"
           : error == cuda::kNoDevice       ? "no CUDA-capable device is detected"
           : error == cuda::kIllegalAddress ? "an illegal memory access was encountered"
                                            : nullptr;
  return *words != nullptr ? cuda::kSuccess : cuda::kInvalidValue;
}
int cuDeviceGetCount(int* count) {
  *count = State().count;
  return cuda::kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return Has(ordinal) ? cuda::kSuccess : cuda::kInvalidDevice;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "%s", State().devices[device].name);
  return cuda::kSuccess;
}
int cuDeviceGetUuid(cuda::Uuid* uuid, int device) {
  *uuid = {};
  uuid->bytes[0] = State().devices[device].uuid_first;
  return cuda::kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = State().devices[device].memory_total;
  return cuda::kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const FakeCudaDevice& from = State().devices[device];
  *value = attribute == cuda::kComputeMajor ? from.major : attribute == cuda::kComputeMinor ? from.minor : 0;
  return cuda::kSuccess;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 0x65 + device);
  return cuda::kSuccess;
}
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned flags) {
  State().context_flags = flags;
  return cuda::kSuccess;
}
int cuDevicePrimaryCtxRetain(cuda::ContextHandle* context, int device) {
  return Do([&] {
    *context = &contexts[device];
    ++State().contexts;
    return cuda::kSuccess;
  });
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(mutex);
  --State().contexts;
  return cuda::kSuccess;
}
int cuCtxSetCurrent(cuda::ContextHandle context) {
  current = context == nullptr ? 0 : context->device;
  return cuda::kSuccess;
}
int cuCtxSynchronize() {
  return Do([] {
    Arrive();
    return cuda::kSuccess;
  });
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* all_bytes) {
  return Do([&] {
    const FakeCudaDevice& device = State().devices[current];
    *all_bytes = device.memory_total;
    *free_bytes = device.memory_total - device.memory_of_others - device.memory_used;
    return cuda::kSuccess;
  });
}
int cuMemAlloc_v2(cuda::Address* address, size_t bytes) {
  return Do([&] {
    FakeCudaDevice& device = State().devices[current];
    if (device.memory_of_others + device.memory_used + bytes > device.memory_total) return cuda::kOutOfMemory;
    void* const memory = std::malloc(bytes);
    std::memset(memory, 0xCC, bytes);
    *address = reinterpret_cast<cuda::Address>(memory);
    blocks[*address] = {current, bytes};
    device.memory_used += bytes;
    ++State().blocks;
    return cuda::kSuccess;
  });
}
int cuMemFree_v2(cuda::Address address) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(address);
  if (found == blocks.end()) return cuda::kInvalidValue;
  State().devices[found->second.first].memory_used -= found->second.second;
  static auto* const freed = new std::vector<void*>;
  freed->push_back(std::memset(reinterpret_cast<void*>(address), 0xDD, found->second.second));
  blocks.erase(found);
  --State().blocks;
  return cuda::kSuccess;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return Do([&] {
    *memory = std::malloc(bytes);
    pinned[reinterpret_cast<cuda::Address>(*memory)] = bytes;
    ++State().blocks;
    return cuda::kSuccess;
  });
}
int cuMemFreeHost(void* memory) {
  const std::lock_guard lock(mutex);
  --State().blocks;
  pinned.erase(reinterpret_cast<cuda::Address>(memory));
  std::free(memory);
  return cuda::kSuccess;
}
int cuMemcpyHtoDAsync_v2(cuda::Address to, const void* from, size_t bytes, cuda::StreamHandle) {
  return Do([&] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    State().uploaded += bytes;
    Pass(bytes);
    return cuda::kSuccess;
  });
}
int cuMemcpyDtoHAsync_v2(void* to, cuda::Address from, size_t bytes, cuda::StreamHandle) {
  return Do([&] {
    arrivals.push_back({to, std::string(reinterpret_cast<const char*>(from), bytes)});
    std::memset(to, 0xCC, bytes);
    State().downloaded += bytes;
    Pass(bytes);
    return cuda::kSuccess;
  });
}
int cuStreamCreate(cuda::StreamHandle* stream, unsigned) {
  return Do([&] {
    *stream = new cuda::StreamTag{current};
    ++State().streams;
    return cuda::kSuccess;
  });
}
int cuStreamDestroy_v2(cuda::StreamHandle stream) {
  const std::lock_guard lock(mutex);
  delete stream;
  --State().streams;
  return cuda::kSuccess;
}
int cuStreamSynchronize(cuda::StreamHandle) {
  return Do([] {
    Arrive();
    return cuda::kSuccess;
  });
}
int cuEventCreate(cuda::EventHandle* event, unsigned flags) {
  return Do([&] {
    *event = new cuda::EventTag;
    State().event_flags = flags;
    ++State().events;
    return cuda::kSuccess;
  });
}
int cuEventDestroy_v2(cuda::EventHandle event) {
  const std::lock_guard lock(mutex);
  delete event;
  --State().events;
  return cuda::kSuccess;
}
int cuEventRecord(cuda::EventHandle event, cuda::StreamHandle) {
  return Do([&] {
    event->at_ms = State().now_ms;
    return cuda::kSuccess;
  });
}
int cuEventSynchronize(cuda::EventHandle) {
  return Do([] {
    FakeCudaState& state = State();
    if (state.stuck_after >= 0 && state.waits >= state.stuck_after)
      return state.stuck = cuda::kIllegalAddress;
    ++state.waits;
    Arrive();
    return cuda::kSuccess;
  });
}
int cuEventElapsedTime(float* milliseconds, cuda::EventHandle from, cuda::EventHandle to) {
  if (from->at_ms < 0 || to->at_ms < 0) return cuda::kInvalidValue;
  *milliseconds = static_cast<float>(to->at_ms - from->at_ms);
  return cuda::kSuccess;
}
int cuModuleLoadData(cuda::ModuleHandle* module, const void* image) {
  return Do([&] {
    const std::string text = static_cast<const char*>(image);
    if (text.find(".version") == std::string::npos) return cuda::kInvalidImage;
    *module = new cuda::ModuleTag{text};
    ++State().modules;
    return cuda::kSuccess;
  });
}
int cuModuleUnload(cuda::ModuleHandle module) {
  const std::lock_guard lock(mutex);
  delete module;
  --State().modules;
  return cuda::kSuccess;
}
int cuModuleGetFunction(cuda::FunctionHandle* function, cuda::ModuleHandle module, const char* name) {
  if (module->text.find(std::string(".entry ") + name) == std::string::npos) return cuda::kNotFound;
  *function = &normalise;
  return normalise.name == name ? cuda::kSuccess : cuda::kNotFound;
}
int cuLaunchKernel(cuda::FunctionHandle, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned,
                   unsigned, unsigned, cuda::StreamHandle, void** parameters, void**) {
  return Do([&] {
    const auto pointer = [&](int i) { return *static_cast<cuda::Address*>(parameters[i]); };
    const auto number = [&](int i) { return *static_cast<unsigned*>(parameters[i]); };
    const auto count = *static_cast<unsigned long long*>(parameters[6]);
    if (static_cast<unsigned long long>(grid_x) * block_x < count) return cuda::kInvalidValue;
    for (unsigned long long at = 0; at < count; ++at) {
      weir::gpu::NormaliseLevel(reinterpret_cast<const unsigned char*>(pointer(0)),
                                reinterpret_cast<const float*>(pointer(1)),
                                reinterpret_cast<float*>(pointer(2)), number(3), number(4), number(5), at);
    }
    ++State().launches;
    Pass(count);
    return cuda::kSuccess;
  });
}
int cuPointerGetAttribute(void* value, int attribute, cuda::Address pointer) {
  return Do([&] {
    auto found = pinned.upper_bound(pointer);
    if (attribute != cuda::kMemoryType || found == pinned.begin()) return cuda::kInvalidValue;
    --found;
    if (pointer >= found->first + found->second) return cuda::kInvalidValue;
    *static_cast<unsigned*>(value) = cuda::kHostMemory;
    return cuda::kSuccess;
  });
}
int cuMemGetAddressRange_v2(cuda::Address* base, size_t* bytes, cuda::Address address) {
  return Do([&] {
    const auto found = blocks.find(address);
    if (found == blocks.end()) return cuda::kInvalidValue;
    *base = address;
    *bytes = found->second.second;
    return cuda::kSuccess;
  });
}
// The fake's handles are "file:" and the path of a file, which stands for the memory of the other process.
int cuIpcOpenMemHandle_v2(cuda::Address* address, cuda::IpcMemory handle, unsigned) {
  return Do([&] {
    const std::string text(handle.bytes, ::strnlen(handle.bytes, sizeof handle.bytes));
    if (!text.starts_with("file:")) return cuda::kInvalidValue;
    const int file = ::open(text.c_str() + 5, O_RDWR | O_CLOEXEC);
    struct stat facts = {};
    if (file < 0 || ::fstat(file, &facts) != 0) return cuda::kInvalidValue;
    const auto size = static_cast<size_t>(facts.st_size);
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) return cuda::kInvalidValue;
    *address = reinterpret_cast<cuda::Address>(memory);
    blocks[*address] = {current, size};
    ++State().blocks;
    return cuda::kSuccess;
  });
}
int cuIpcCloseMemHandle(cuda::Address address) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(address);
  if (found == blocks.end()) return cuda::kInvalidValue;
  ::munmap(reinterpret_cast<void*>(address), found->second.second);
  blocks.erase(found);
  --State().blocks;
  return cuda::kSuccess;
}

}  // extern "C"
