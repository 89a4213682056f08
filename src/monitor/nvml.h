// The few declarations of NVIDIA's public header nvml.h that are used here, by the same names less their
// prefix; the values are those of its version 12 (the API keeps old ones for good: a new form gets a new
// name). https://docs.nvidia.com/deploy/nvml-api/
#pragma once

namespace weir::monitor::nvml {

using Return = int;    // nvmlReturn_t
using Device = void*;  // nvmlDevice_t
constexpr Return kSuccess = 0;
constexpr Return kNotSupported = 3;
constexpr Return kNoPermission = 4;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kGpuIsLost = 15;

constexpr int kEccUncorrected = 1, kEccVolatile = 0;  // nvmlMemoryErrorType_t, nvmlEccCounterType_t
constexpr unsigned long long kEventXid = 0x8;         // nvmlEventTypeXidCriticalError
constexpr int kClockSm = 1;                           // NVML_CLOCK_SM of nvmlClockType_t

struct Utilization {     // nvmlUtilization_t
  unsigned gpu, memory;  // percent
};
struct Memory {                          // nvmlMemory_t; `used` has the driver's own part in it
  unsigned long long total, free, used;  // bytes
};
struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  // Bytes. `used` has `reserved` left out, as nvidia-smi shows it (so it is on A100s, 7.8 MB against 912 MB
  // of the first form, github.com/Cldfire/nvml-wrapper/issues/57; headers before version 590 say otherwise).
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | 2u << 24;  // NVML_STRUCT_VERSION(Memory, 2)
static_assert(kMemoryV2 == 0x02000028);

struct ProcessInfo {  // nvmlProcessInfo_t, of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
using EventSet = void*;  // nvmlEventSet_t
struct EventData {       // nvmlEventData_t
  Device device;
  unsigned long long type, data;  // the number of an XID
  unsigned gpu_instance, compute_instance;
};

// The activities of a card's parts (GPM), Hopper or newer. The array of metrics has grown between versions:
// room for more than any of them has.
using GpmSample = void*;  // nvmlGpmSample_t
struct GpmSupport {       // nvmlGpmSupport_t
  unsigned version, supported;
};
struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id;
  Return error;
  double value;
  const char *short_name, *long_name, *unit;
};
struct GpmMetrics {  // nvmlGpmMetricsGet_t
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[512];
};
constexpr unsigned kGpmVersion = 1;
constexpr unsigned kGpmGraphics = 1, kGpmSm = 2, kGpmTensor = 5, kGpmDram = 10, kGpmPcieTx = 20,
                   kGpmPcieRx = 21,
                   kGpmJpeg = 40;  // nvmlGpmMetricId_t: percent; of PCIe MiB/s

// nvmlClocksThrottleReason...: bits of nvmlDeviceGetCurrentClocksThrottleReasons.
constexpr unsigned long long kGpuIdle = 0x1, kApplicationsClocksSetting = 0x2, kSwPowerCap = 0x4,
                             kHwSlowdown = 0x8, kSyncBoost = 0x10, kSwThermalSlowdown = 0x20,
                             kHwThermalSlowdown = 0x40, kHwPowerBrakeSlowdown = 0x80,
                             kDisplayClockSetting = 0x100;

}  // namespace weir::monitor::nvml
