#include "gpu/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace weir::gpu {
namespace {

constexpr std::array kSticky = {cuda::kEccUncorrectable,    cuda::kIllegalAddress,
                                cuda::kLaunchTimeout,       cuda::kAssert,
                                cuda::kHardwareStackError,  cuda::kIllegalInstruction,
                                cuda::kMisalignedAddress,   cuda::kInvalidAddressSpace,
                                cuda::kInvalidPc,           cuda::kLaunchFailed,
                                cuda::kNvlinkUncorrectable, cuda::kContained,
                                cuda::kContextIsDestroyed,  cuda::kUnknown};

std::string_view RemedyOf(cuda::Return error) {
  switch (error) {
    case cuda::kOutOfMemory:
      return "use smaller batches, fewer instances or models, or end other programs on the card (nvidia-smi "
             "lists them)";
    case cuda::kNoDevice:
      return "look at nvidia-smi; a container needs the device (--device nvidia.com/gpu=all), and "
             "CUDA_VISIBLE_DEVICES must name one";
    case cuda::kStubLibrary:
      return "this libcuda.so.1 is the toolkit's stub: take its folder out of LD_LIBRARY_PATH, or install "
             "NVIDIA's driver";
    case cuda::kDriverTooOld:
    case 803:  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
      return "the kernel's driver and libcuda.so.1 are of different versions: restart the machine after an "
             "update, or update the driver";
    case 46:  // CUDA_ERROR_DEVICE_UNAVAILABLE
      return "another process has the card for itself: end it, or set the compute mode to the default "
             "(nvidia-smi -c 0)";
    case 802:  // CUDA_ERROR_SYSTEM_NOT_READY
      return "the machine's NVSwitch is not ready: start nvidia-fabricmanager, of the driver's version";
    case cuda::kEccUncorrectable:
      return "the card has a memory error: reset it, or take it out of service";
    default:
      return Driver::IsSticky(error) ? "the device is lost to this process: start it again, and look for XID "
                                       "in the kernel's log"
                                     : "";
  }
}

// As NVML writes it.
std::string UuidText(const cuda::Uuid& uuid, bool is_mig) {
  std::string text = is_mig ? "MIG" : "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", uuid.bytes[i]);
  }
  return text;
}

}  // namespace

std::string VersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

bool Driver::IsSticky(cuda::Return error) {
  for (const cuda::Return sticky : kSticky) {
    if (error == sticky) return true;
  }
  return false;
}

Result<DriverPtr> Driver::Open(const std::string& library) {
  const std::shared_ptr<Driver> driver(new Driver());
  TRY_STATUS(driver->Bind(library));
  TRY_STATUS(driver->Start());
  TRY_STATUS(driver->FindDevices());
  return driver;
}

// The library stays open: its threads and contexts last as long as the process.
Status Driver::Bind(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = ::dlerror();
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("no NVIDIA driver: {}: install it (580 or later for CUDA 13); a container gets it "
                    "with --device nvidia.com/gpu=all, or --gpus all",
                    words != nullptr ? words : library));
  }
  const auto missing = [&](const char* name) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} has no {}: it is no driver of NVIDIA's, or one older than 450: update it",
                            library, name));
  };
#define WEIR_BIND(member, name, parameters)                           \
  member = reinterpret_cast<decltype(member)>(::dlsym(handle, name)); \
  if (member == nullptr) return missing(name);
  WEIR_CUDA_FUNCTIONS(WEIR_BIND)
#undef WEIR_BIND
  error_name_ = reinterpret_cast<decltype(error_name_)>(::dlsym(handle, "cuGetErrorName"));
  error_string_ = reinterpret_cast<decltype(error_string_)>(::dlsym(handle, "cuGetErrorString"));
  // The second form tells of a MIG instance what the first tells of the card around it.
  if (void* newer = ::dlsym(handle, "cuDeviceGetUuid_v2"))
    device_uuid = reinterpret_cast<decltype(device_uuid)>(newer);
  return {};
}

Status Driver::Start() {
  if (const cuda::Return error = init(0); error != cuda::kSuccess) {
    Status failed = Check(error, "NVIDIA's driver does not start");
    failed.error().code = ErrorCode::kUnsupported;
    return failed;
  }
  return Check(driver_version(&version_), "the driver's version");
}

Status Driver::FindDevices() {
  int count = 0;
  TRY_STATUS(Check(device_count(&count), "count the GPUs"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const std::string what = fmt::format("cuda:{}", ordinal);
    cuda::DeviceHandle device = 0;
    TRY_STATUS(Check(device_get(&device, ordinal), what));
    DeviceFacts facts{.ordinal = ordinal, .name = {}, .uuid = {}, .pci = {}};
    char text[128] = "";
    if (device_name(text, sizeof text, device) == cuda::kSuccess) facts.name = text;
    if (device_pci(text, sizeof text, device) == cuda::kSuccess) facts.pci = text;
    TRY_STATUS(Check(device_attribute(&facts.major, cuda::kComputeMajor, device), what));
    TRY_STATUS(Check(device_attribute(&facts.minor, cuda::kComputeMinor, device), what));
    size_t bytes = 0;
    TRY_STATUS(Check(device_memory(&bytes, device), what));
    facts.memory_bytes = static_cast<int64_t>(bytes);
    cuda::Uuid uuid{};
    const bool is_mig = facts.name.find(" MIG ") != std::string::npos;
    if (device_uuid(&uuid, device) == cuda::kSuccess) facts.uuid = UuidText(uuid, is_mig);
    devices_.push_back(std::move(facts));
  }
  return {};
}

std::string Driver::Words(cuda::Return error) const {
  const char *name = nullptr, *words = nullptr;
  if (error_name_ != nullptr) error_name_(error, &name);
  if (error_string_ != nullptr) error_string_(error, &words);
  return fmt::format("CUDA error {}{}{}{}{}", error, name != nullptr ? " " : "", name != nullptr ? name : "",
                     words != nullptr ? ", " : "", words != nullptr ? words : "");
}

Status Driver::Check(cuda::Return error, std::string_view what) const {
  if (error == cuda::kSuccess) return {};
  const std::string_view remedy = RemedyOf(error);
  return Fail(error == cuda::kOutOfMemory ? ErrorCode::kOverloaded : ErrorCode::kInternal,
              fmt::format("{}: {}{}{}", what, Words(error), remedy.empty() ? "" : ": ", remedy));
}

}  // namespace weir::gpu
