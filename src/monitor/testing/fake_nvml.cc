#include "monitor/testing/fake_nvml.h"

#include <unistd.h>

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
nvml::Return nvmlDeviceGetUUID(nvml::Device device, char* text, unsigned size) {
  return At(device).error != 0 ? At(device).error : GiveText(At(device).uuid, text, size);
}
nvml::Return nvmlDeviceGetPersistenceMode(nvml::Device device, unsigned* on) {
  return Give(device, on, At(device).persistence);
}
nvml::Return nvmlDeviceGetCurrPcieLinkWidth(nvml::Device device, unsigned* lanes) {
  return Give(device, lanes, At(device).pcie_width);
}
nvml::Return nvmlDeviceGetMaxPcieLinkWidth(nvml::Device device, unsigned* lanes) {
  return Give(device, lanes, At(device).pcie_most);
}
nvml::Return nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned* milliwatts) {
  return Give(device, milliwatts, At(device).limit_mw);
}
nvml::Return nvmlDeviceGetPowerManagementDefaultLimit(nvml::Device device, unsigned* milliwatts) {
  return Give(device, milliwatts, At(device).usual_limit_mw);
}
nvml::Return nvmlDeviceGetMaxClockInfo(nvml::Device device, int, unsigned* megahertz) {
  return Give(device, megahertz, At(device).most_clock_mhz);
}
nvml::Return nvmlDeviceGetTotalEccErrors(nvml::Device device, int, int, unsigned long long* errors) {
  return Give(device, errors, At(device).ecc_errors);
}
nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count,
                                                     nvml::ProcessInfo* processes) {
  if (At(device).error != 0) return At(device).error;
  *count = At(device).neighbours + 1;
  for (unsigned i = 0; i < *count; ++i) processes[i] = {.pid = i == 0 ? static_cast<unsigned>(getpid()) : i};
  return nvml::kSuccess;
}
// A GPM sample is the number of readings so far, and its device.
struct FakeGpmSample {
  nvml::Device device = nullptr;
};
nvml::Return nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  if (support->version != nvml::kGpmVersion) return 25;
  return Give(device, &support->supported, At(device).has_gpm ? 1U : 0U);
}
nvml::Return nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  *sample = new FakeGpmSample;
  ++State().gpm_samples;
  return nvml::kSuccess;
}
nvml::Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  delete static_cast<FakeGpmSample*>(sample);
  --State().gpm_samples;
  return nvml::kSuccess;
}
nvml::Return nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  static_cast<FakeGpmSample*>(sample)->device = device;
  return nvml::kSuccess;
}
nvml::Return nvmlGpmMetricsGet(nvml::GpmMetrics* metrics) {
  if (metrics->version != nvml::kGpmVersion || metrics->first == metrics->second) return 2;
  const FakeNvmlDevice& device = At(static_cast<FakeGpmSample*>(metrics->second)->device);
  for (unsigned i = 0; i < metrics->count; ++i) {
    nvml::GpmMetric& metric = metrics->metrics[i];
    metric.error = metric.id == nvml::kGpmJpeg ? nvml::kNotSupported : nvml::kSuccess;
    metric.value = metric.id == nvml::kGpmGraphics ? device.graphics
                   : metric.id == nvml::kGpmTensor ? device.tensor
                                                   : 1;
  }
  return nvml::kSuccess;
}
nvml::Return nvmlEventSetCreate(nvml::EventSet* set) {
  *set = &State();
  return nvml::kSuccess;
}
nvml::Return nvmlEventSetFree(nvml::EventSet) { return nvml::kSuccess; }
nvml::Return nvmlDeviceRegisterEvents(nvml::Device, unsigned long long, nvml::EventSet) {
  return nvml::kSuccess;
}
nvml::Return nvmlEventSetWait_v2(nvml::EventSet, nvml::EventData* event, unsigned) {
  for (unsigned i = 0; i < State().count; ++i) {
    FakeNvmlDevice& device = State().devices[i];
    if (device.xid == 0) continue;
    *event = {.device = &device,
              .type = nvml::kEventXid,
              .data = device.xid,
              .gpu_instance = 0,
              .compute_instance = 0};
    device.xid = 0;
    return nvml::kSuccess;
  }
  return 10;  // NVML_ERROR_TIMEOUT
}
nvml::Return nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* millijoules) {
  return Give(device, millijoules, At(device).energy_mj);
}
#endif

}  // extern "C"
