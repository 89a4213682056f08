// NVIDIA's management library (NVML), opened while the program runs: it comes with the driver. The
// declarations are those of its public header, nvml.h, of which only these few are used.
#include <dlfcn.h>

#include <memory>

#include "probe/host_reader.h"

namespace weir::probe {
namespace {

using Device = void*;
struct Memory {
  unsigned long long total, free, used;  // bytes
};

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  bool Load(void* library) {
    return Find(library, "nvmlInit_v2", init) && Find(library, "nvmlShutdown", shutdown) &&
           Find(library, "nvmlErrorString", error_string) &&
           Find(library, "nvmlSystemGetDriverVersion", driver_version) &&
           Find(library, "nvmlDeviceGetCount_v2", count) &&
           Find(library, "nvmlDeviceGetHandleByIndex_v2", by_index) &&
           Find(library, "nvmlDeviceGetName", name) && Find(library, "nvmlDeviceGetMemoryInfo", memory);
  }
};

void ReadDevices(const Nvml& nvml, GpusFacts& facts) {
  char text[128] = "";
  if (nvml.driver_version(text, sizeof text) == 0) facts.driver = text;
  unsigned count = 0;
  if (const int error = nvml.count(&count); error != 0) facts.problem = nvml.error_string(error);
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    GpuFacts gpu;
    Memory memory{};
    if (nvml.by_index(i, &device) != 0 || nvml.name(device, text, sizeof text) != 0) continue;
    gpu.name = text;
    if (nvml.memory(device, &memory) == 0) gpu.memory_bytes = static_cast<int64_t>(memory.total);
    facts.gpus.push_back(std::move(gpu));
  }
  if (facts.gpus.empty() && facts.problem.empty()) facts.problem = "no device";
}

}  // namespace

GpusFacts ReadGpus() {
  GpusFacts facts;
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL),
                                                      ::dlclose);
  Nvml nvml;
  if (!library || !nvml.Load(library.get())) return facts;
  facts.library = true;
  if (const int error = nvml.init(); error != 0) {
    facts.problem = nvml.error_string(error);
    return facts;
  }
  ReadDevices(nvml, facts);
  nvml.shutdown();
  return facts;
}

}  // namespace weir::probe
