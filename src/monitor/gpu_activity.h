// Activities of a card's parts (NVML's GPM), and its critical errors (XID): all that NVML tells between two
// moments.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "monitor/gpu.h"
#include "monitor/nvml.h"

namespace weir::monitor {

// Thread-safe. Uses `library`, which must be open and begun as long as it lives. A library or a card that
// does not know of them adds nothing.
class GpuActivity {
 public:
  GpuActivity(void* library, const std::vector<void*>& devices);
  ~GpuActivity();
  GpuActivity(const GpuActivity&) = delete;
  GpuActivity& operator=(const GpuActivity&) = delete;

  // Adds to `sample`, of the device at `index`, what there was since the call before; the first adds nothing.
  void Read(size_t index, GpuSample& sample);

 private:
  struct Device {
    nvml::Device handle = nullptr;
    nvml::GpmSample before = nullptr, now = nullptr;  // null where there is no GPM
    bool has_before = false;
    std::optional<int64_t> xid;
  };
  void ReadGpm(Device& device, GpuSample& sample) REQUIRES(mutex_);
  void ReadEvents() REQUIRES(mutex_);

  nvml::Return (*support_)(nvml::Device, nvml::GpmSupport*) = nullptr;
  nvml::Return (*allocate_)(nvml::GpmSample*) = nullptr;
  nvml::Return (*free_)(nvml::GpmSample) = nullptr;
  nvml::Return (*get_)(nvml::Device, nvml::GpmSample) = nullptr;
  nvml::Return (*metrics_)(nvml::GpmMetrics*) = nullptr;
  nvml::Return (*make_events_)(nvml::EventSet*) = nullptr;
  nvml::Return (*free_events_)(nvml::EventSet) = nullptr;
  nvml::Return (*register_)(nvml::Device, unsigned long long, nvml::EventSet) = nullptr;
  nvml::Return (*wait_)(nvml::EventSet, nvml::EventData*, unsigned) = nullptr;

  Mutex mutex_;
  nvml::EventSet events_ GUARDED_BY(mutex_) = nullptr;
  std::vector<Device> devices_ GUARDED_BY(mutex_);
};

}  // namespace weir::monitor
