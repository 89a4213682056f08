#include "monitor/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "monitor/gpu_activity.h"
#include "monitor/nvml.h"

namespace weir::monitor {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

constexpr std::pair<unsigned long long, const char*> kReasons[] = {
    {nvml::kApplicationsClocksSetting, "application_clocks"},
    {nvml::kSwPowerCap, "power_cap"},
    {nvml::kHwSlowdown, "hardware_slowdown"},
    {nvml::kSyncBoost, "sync_boost"},
    {nvml::kSwThermalSlowdown, "software_thermal"},
    {nvml::kHwThermalSlowdown, "hardware_thermal"},
    {nvml::kHwPowerBrakeSlowdown, "power_brake"},
    {nvml::kDisplayClockSetting, "display_clocks"},
};

}  // namespace

// The library while it is open, and what of it is used. The first five it must have; of the others, one that
// an old library lacks is null, and what it would tell is absent.
struct GpuReader::Nvml {
  ~Nvml() {
    if (begun) shutdown();
  }

  template <typename Function>
  bool Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library.get(), name));
    return function != nullptr;
  }

  Status Load(const std::string& name);
  std::string Words(nvml::Return error) const {
    const char* words = error_string(error);
    return words != nullptr ? words : fmt::format("error {}", error);
  }

  template <typename Value>
  std::optional<Value> Ask(nvml::Return (*function)(nvml::Device, Value*), nvml::Device device) const {
    Value value{};
    if (function == nullptr || function(device, &value) != nvml::kSuccess) return std::nullopt;
    return value;
  }
  std::optional<int64_t> MemoryInUse(nvml::Device device) const;
  GpuSample Sample(nvml::Device device) const;
  bool IsDivided(nvml::Device device) const;
  GpuDevice Facts(nvml::Device device, unsigned index) const;
  std::optional<int64_t> Neighbours(nvml::Device device) const;

  std::unique_ptr<void, CloseLibrary> library;
  bool begun = false;

  nvml::Return (*init)() = nullptr;
  nvml::Return (*shutdown)() = nullptr;
  const char* (*error_string)(nvml::Return) = nullptr;
  nvml::Return (*count)(unsigned*) = nullptr;
  nvml::Return (*by_index)(unsigned, nvml::Device*) = nullptr;

  nvml::Return (*driver_version)(char*, unsigned) = nullptr;
  nvml::Return (*name)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*mig_mode)(nvml::Device, unsigned* now, unsigned* next) = nullptr;
  nvml::Return (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  nvml::Return (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  nvml::Return (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  nvml::Return (*energy)(nvml::Device, unsigned long long* millijoules) = nullptr;
  nvml::Return (*power)(nvml::Device, unsigned* milliwatts) = nullptr;
  nvml::Return (*clock)(nvml::Device, int type, unsigned* megahertz) = nullptr;
  nvml::Return (*clock_reasons)(nvml::Device, unsigned long long*) = nullptr;
  nvml::Return (*uuid)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*persistence)(nvml::Device, unsigned* on) = nullptr;
  nvml::Return (*pcie_width)(nvml::Device, unsigned* lanes) = nullptr;
  nvml::Return (*pcie_most)(nvml::Device, unsigned* lanes) = nullptr;
  nvml::Return (*power_limit)(nvml::Device, unsigned* milliwatts) = nullptr;
  nvml::Return (*usual_limit)(nvml::Device, unsigned* milliwatts) = nullptr;
  nvml::Return (*most_clock)(nvml::Device, int type, unsigned* megahertz) = nullptr;
  nvml::Return (*ecc)(nvml::Device, int type, int counter, unsigned long long* errors) = nullptr;
  nvml::Return (*processes)(nvml::Device, unsigned* count, nvml::ProcessInfo*) = nullptr;
};

Status GpuReader::Nvml::Load(const std::string& path) {
  library.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    const char* words = ::dlerror();
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("NVML: {} (NVIDIA's driver brings it; a container gets it with the driver capability "
                    "\"utility\")",
                    words != nullptr ? words : path));
  }
  const char* missing = !Find("nvmlInit_v2", init)                         ? "nvmlInit_v2"
                        : !Find("nvmlShutdown", shutdown)                  ? "nvmlShutdown"
                        : !Find("nvmlErrorString", error_string)           ? "nvmlErrorString"
                        : !Find("nvmlDeviceGetCount_v2", count)            ? "nvmlDeviceGetCount_v2"
                        : !Find("nvmlDeviceGetHandleByIndex_v2", by_index) ? "nvmlDeviceGetHandleByIndex_v2"
                                                                           : nullptr;
  if (missing != nullptr) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("NVML: {} has no {}: is it the library of NVIDIA's driver?", path, missing));
  }
  Find("nvmlSystemGetDriverVersion", driver_version);
  Find("nvmlDeviceGetName", name);
  Find("nvmlDeviceGetMigMode", mig_mode);
  Find("nvmlDeviceGetMemoryInfo", memory);
  Find("nvmlDeviceGetMemoryInfo_v2", memory_v2);
  Find("nvmlDeviceGetUtilizationRates", utilization);
  Find("nvmlDeviceGetTotalEnergyConsumption", energy);
  Find("nvmlDeviceGetPowerUsage", power);
  Find("nvmlDeviceGetClockInfo", clock);
  Find("nvmlDeviceGetUUID", uuid);
  Find("nvmlDeviceGetPersistenceMode", persistence);
  Find("nvmlDeviceGetCurrPcieLinkWidth", pcie_width);
  Find("nvmlDeviceGetMaxPcieLinkWidth", pcie_most);
  Find("nvmlDeviceGetEnforcedPowerLimit", power_limit);
  Find("nvmlDeviceGetPowerManagementDefaultLimit", usual_limit);
  Find("nvmlDeviceGetMaxClockInfo", most_clock);
  Find("nvmlDeviceGetTotalEccErrors", ecc);
  Find("nvmlDeviceGetComputeRunningProcesses_v3", processes);
  // The same, renamed in version 12; the old name stays in the library.
  if (!Find("nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons)) {
    Find("nvmlDeviceGetCurrentClocksEventReasons", clock_reasons);
  }
  return {};
}

std::optional<int64_t> GpuReader::Nvml::MemoryInUse(nvml::Device device) const {
  nvml::MemoryV2 newer{.version = nvml::kMemoryV2};
  if (memory_v2 != nullptr && memory_v2(device, &newer) == nvml::kSuccess)
    return static_cast<int64_t>(newer.used);
  const auto older = Ask(memory, device);
  if (!older) return std::nullopt;
  return static_cast<int64_t>(older->used);
}

GpuSample GpuReader::Nvml::Sample(nvml::Device device) const {
  GpuSample sample;
  if (const auto rates = Ask(utilization, device)) sample.percent = rates->gpu;
  sample.memory_bytes = MemoryInUse(device);
  if (const auto millijoules = Ask(energy, device))
    sample.energy_j = 1e-3 * static_cast<double>(*millijoules);
  if (const auto milliwatts = Ask(power, device)) sample.power_watts = 1e-3 * *milliwatts;
  unsigned megahertz = 0;
  if (clock != nullptr && clock(device, nvml::kClockSm, &megahertz) == nvml::kSuccess)
    sample.clock_mhz = megahertz;
  sample.clock_reasons = Ask(clock_reasons, device);
  unsigned long long errors = 0;
  if (ecc != nullptr && ecc(device, nvml::kEccUncorrected, nvml::kEccVolatile, &errors) == nvml::kSuccess)
    sample.ecc_errors = static_cast<int64_t>(errors);
  sample.neighbours = Neighbours(device);
  return sample;
}

// Processes in other containers may be told without a number that is theirs here: they count too.
std::optional<int64_t> GpuReader::Nvml::Neighbours(nvml::Device device) const {
  nvml::ProcessInfo found[64];
  unsigned count = std::size(found);
  if (processes == nullptr || processes(device, &count, found) != nvml::kSuccess) return std::nullopt;
  return std::count_if(found, found + count, [](const nvml::ProcessInfo& process) {
    return process.pid != static_cast<unsigned>(::getpid());
  });
}

GpuDevice GpuReader::Nvml::Facts(nvml::Device device, unsigned index) const {
  GpuDevice facts{.name = fmt::format("GPU {}", index)};
  char text[128] = "";
  if (name != nullptr && name(device, text, sizeof text) == nvml::kSuccess) facts.name = text;
  facts.is_divided = IsDivided(device);
  if (facts.is_divided) facts.name += " (MIG)";
  if (const auto all = Ask(memory, device)) facts.memory_bytes = static_cast<int64_t>(all->total);
  if (uuid != nullptr && uuid(device, text, sizeof text) == nvml::kSuccess) facts.uuid = text;
  if (const auto on = Ask(persistence, device)) facts.persistent = *on != 0;
  if (const auto lanes = Ask(pcie_width, device)) facts.pcie_width = static_cast<int>(*lanes);
  if (const auto lanes = Ask(pcie_most, device)) facts.pcie_most = static_cast<int>(*lanes);
  if (const auto limit = Ask(power_limit, device)) facts.power_limit_w = 1e-3 * *limit;
  if (const auto limit = Ask(usual_limit, device)) facts.usual_limit_w = 1e-3 * *limit;
  unsigned megahertz = 0;
  if (most_clock != nullptr && most_clock(device, nvml::kClockSm, &megahertz) == nvml::kSuccess)
    facts.most_clock_mhz = megahertz;
  return facts;
}

bool GpuReader::Nvml::IsDivided(nvml::Device device) const {
  unsigned now = 0, next = 0;
  return mig_mode != nullptr && mig_mode(device, &now, &next) == nvml::kSuccess && now == 1;
}

std::vector<std::string> ClockReasons(uint64_t mask) {
  std::vector<std::string> names;
  mask &= ~uint64_t{nvml::kGpuIdle};
  for (const auto& [bit, name] : kReasons) {
    if ((mask & bit) != 0) names.emplace_back(name);
    mask &= ~uint64_t{bit};
  }
  for (; mask != 0; mask &= mask - 1) names.push_back(fmt::format("unknown_{:#x}", mask & -mask));
  return names;
}

Result<std::unique_ptr<GpuReader>> GpuReader::Open(const std::string& library) {
  auto opened = std::make_unique<Nvml>();
  TRY_STATUS(opened->Load(library));
  if (const nvml::Return error = opened->init(); error != nvml::kSuccess) {
    return Fail(ErrorCode::kUnsupported, fmt::format("NVML: {}", opened->Words(error)));
  }
  opened->begun = true;
  std::unique_ptr<GpuReader> reader(new GpuReader(std::move(opened)));
  TRY_STATUS(reader->FindDevices());
  return reader;
}

GpuReader::GpuReader(std::unique_ptr<Nvml> nvml) : nvml_(std::move(nvml)) {}

GpuReader::~GpuReader() = default;

// A device that cannot be had (it fell off the bus, or is not ours to use) is passed over; the others are
// told of.
Status GpuReader::FindDevices() {
  char text[128] = "";
  if (nvml_->driver_version != nullptr && nvml_->driver_version(text, sizeof text) == nvml::kSuccess)
    driver_ = text;
  unsigned count = 0;
  if (const nvml::Return error = nvml_->count(&count); error != nvml::kSuccess) {
    return Fail(ErrorCode::kUnsupported, fmt::format("NVML: {}", nvml_->Words(error)));
  }
  std::string problem = "it finds no device";
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device handle = nullptr;
    if (const nvml::Return error = nvml_->by_index(i, &handle); error != nvml::kSuccess) {
      problem = fmt::format("device {}: {}", i, nvml_->Words(error));
      continue;
    }
    handles_.push_back(handle);
    devices_.push_back(nvml_->Facts(handle, i));
  }
  if (devices_.empty()) return Fail(ErrorCode::kUnsupported, fmt::format("NVML: {}", problem));
  activity_ = std::make_unique<GpuActivity>(nvml_->library.get(), handles_);
  return {};
}

std::vector<GpuSample> GpuReader::Read() const {
  std::vector<GpuSample> samples;
  for (size_t i = 0; i < handles_.size(); ++i) {
    samples.push_back(nvml_->Sample(handles_[i]));
    activity_->Read(i, samples.back());
  }
  return samples;
}

}  // namespace weir::monitor
