#include "monitor/testing/fake_nvml.h"

#include <cstring>

// Compiled with FAKE_NVML_OLD: the library of a driver from before the energy counter and the second form of
// the memory's account.

using namespace weir::monitor;  // NOLINT: a library of one file

namespace {

FakeNvmlState& State() {
  static FakeNvmlState state;
  return state;
}

FakeNvmlDevice& At(nvml::Device device) { return *static_cast<FakeNvmlDevice*>(device); }

template <typename Value, typename From>
nvml::Return Give(nvml::Device device, Value* value, const From& from) {
  if (At(device).error != 0) return At(device).error;
  *value = from;
  return nvml::kSuccess;
}

nvml::Return GiveText(const char* from, char* text, unsigned size) {
  if (std::strlen(from) + 1 > size) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::strcpy(text, from);
  return nvml::kSuccess;
}

}  // namespace

extern "C" {

FakeNvmlState* FakeNvml() { return &State(); }

nvml::Return nvmlInit_v2() {
  if (State().init_error == 0) ++State().open;
  return State().init_error;
}
nvml::Return nvmlShutdown() {
  --State().open;
  return nvml::kSuccess;
}
const char* nvmlErrorString(nvml::Return error) {
  switch (error) {
    case nvml::kSuccess:
      return "Success";
    case nvml::kNotSupported:
      return "Not Supported";
    case nvml::kNoPermission:
      return "Insufficient Permissions";
    case nvml::kDriverNotLoaded:
      return "Driver Not Loaded";
    case nvml::kGpuIsLost:
      return "GPU is lost";
    default:
      return nullptr;
  }
}
nvml::Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = State().count;
  return State().count_error;
}
nvml::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* device) {
  if (State().devices[index].handle_error != 0) return State().devices[index].handle_error;
  *device = &State().devices[index];
  return nvml::kSuccess;
}
nvml::Return nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return GiveText("580.65.06", text, size);
}
nvml::Return nvmlDeviceGetName(nvml::Device device, char* text, unsigned size) {
  return At(device).error != 0 ? At(device).error : GiveText(At(device).name, text, size);
}
nvml::Return nvmlDeviceGetMigMode(nvml::Device device, unsigned* now, unsigned* next) {
  *next = 0;
  return Give(device, now, At(device).mig);
}
nvml::Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  const FakeNvmlDevice& from = At(device);
  const unsigned long long used = from.memory_used + from.memory_reserved;
  return Give(device, memory, nvml::Memory{from.memory_total, from.memory_total - used, used});
}
// As on a divided device, which has no one utilisation.
nvml::Return nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* rates) {
  if (At(device).mig == 1) return nvml::kNotSupported;
  return Give(device, rates, nvml::Utilization{At(device).percent, 0});
}
nvml::Return nvmlDeviceGetPowerUsage(nvml::Device device, unsigned* milliwatts) {
  return Give(device, milliwatts, At(device).power_mw);
}
nvml::Return nvmlDeviceGetClockInfo(nvml::Device device, int type, unsigned* megahertz) {
  return type != nvml::kClockSm ? 2 : Give(device, megahertz, At(device).clock_mhz);
}

#ifdef FAKE_NVML_OLD
nvml::Return nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device, unsigned long long* mask) {
  return Give(device, mask, At(device).clock_reasons);
}
#else
nvml::Return nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, unsigned long long* mask) {
  return Give(device, mask, At(device).clock_reasons);
}
nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  const FakeNvmlDevice& from = At(device);
  if (memory->version != nvml::kMemoryV2) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  return Give(device, memory,
              nvml::MemoryV2{memory->version, from.memory_total, from.memory_reserved,
                             from.memory_total - from.memory_used - from.memory_reserved, from.memory_used});
}
nvml::Return nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* millijoules) {
  return Give(device, millijoules, At(device).energy_mj);
}
#endif

}  // extern "C"
