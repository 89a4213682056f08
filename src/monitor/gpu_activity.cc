#include "monitor/gpu_activity.h"

#include <dlfcn.h>

#include <memory>
#include <utility>

namespace weir::monitor {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

GpuActivity::GpuActivity(void* library, const std::vector<void*>& devices) {
  MutexLock lock(mutex_);
  for (void* handle : devices) devices_.push_back({.handle = handle});
  const bool has_gpm = Find(library, "nvmlGpmQueryDeviceSupport", support_) &&
                       Find(library, "nvmlGpmSampleAlloc", allocate_) &&
                       Find(library, "nvmlGpmSampleFree", free_) && Find(library, "nvmlGpmSampleGet", get_) &&
                       Find(library, "nvmlGpmMetricsGet", metrics_);
  for (Device& device : devices_) {
    nvml::GpmSupport support{.version = nvml::kGpmVersion, .supported = 0};
    if (!has_gpm || support_(device.handle, &support) != nvml::kSuccess || support.supported == 0) continue;
    if (allocate_(&device.before) != nvml::kSuccess || allocate_(&device.now) != nvml::kSuccess)
      device.now = nullptr;
  }
  const bool has_events =
      Find(library, "nvmlEventSetCreate", make_events_) && Find(library, "nvmlEventSetFree", free_events_) &&
      Find(library, "nvmlDeviceRegisterEvents", register_) && Find(library, "nvmlEventSetWait_v2", wait_);
  if (!has_events || make_events_(&events_) != nvml::kSuccess) {
    events_ = nullptr;
    return;
  }
  for (const Device& device : devices_) static_cast<void>(register_(device.handle, nvml::kEventXid, events_));
}

GpuActivity::~GpuActivity() {
  MutexLock lock(mutex_);
  for (const Device& device : devices_) {
    if (device.before != nullptr) free_(device.before);
    if (device.now != nullptr) free_(device.now);
  }
  if (events_ != nullptr) free_events_(events_);
}

void GpuActivity::Read(size_t index, GpuSample& sample) {
  MutexLock lock(mutex_);
  ReadEvents();
  Device& device = devices_[index];
  sample.xid = device.xid;
  if (device.now != nullptr) ReadGpm(device, sample);
}

void GpuActivity::ReadEvents() {
  nvml::EventData event{};
  while (events_ != nullptr && wait_(events_, &event, 0) == nvml::kSuccess) {
    for (Device& device : devices_) {
      if (device.handle == event.device) device.xid = static_cast<int64_t>(event.data);
    }
  }
}

void GpuActivity::ReadGpm(Device& device, GpuSample& sample) {
  if (get_(device.handle, device.now) != nvml::kSuccess) return;
  if (std::exchange(device.has_before, true)) {
    const std::pair<unsigned, std::optional<double>*> wanted[] = {
        {nvml::kGpmGraphics, &sample.graphics_percent}, {nvml::kGpmSm, &sample.sm_percent},
        {nvml::kGpmTensor, &sample.tensor_percent},     {nvml::kGpmDram, &sample.dram_percent},
        {nvml::kGpmJpeg, &sample.jpeg_percent},         {nvml::kGpmPcieTx, &sample.pcie_sent_mib_s},
        {nvml::kGpmPcieRx, &sample.pcie_received_mib_s}};
    const auto asked = std::make_unique<nvml::GpmMetrics>();
    asked->version = nvml::kGpmVersion;
    asked->first = device.before;
    asked->second = device.now;
    for (const auto& [id, value] : wanted) asked->metrics[asked->count++].id = id;
    // Samples that are too close together fail: what there was then counts for the next.
    if (metrics_(asked.get()) != nvml::kSuccess) return;
    unsigned at = 0;
    for (const auto& [id, value] : wanted) {
      if (asked->metrics[at].error == nvml::kSuccess) *value = asked->metrics[at].value;
      ++at;
    }
  }
  std::swap(device.before, device.now);
}

}  // namespace weir::monitor
