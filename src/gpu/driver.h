// NVIDIA's driver, by its own interface (libcuda). It is opened while the program runs and nothing is linked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gpu/cuda_api.h"

namespace weir::gpu {

constexpr char kDriverLibrary[] = "libcuda.so.1";

struct DeviceFacts {
  int ordinal = 0;  // as CUDA counts them, after CUDA_VISIBLE_DEVICES
  std::string name;
  std::string uuid;          // "GPU-..." or, of a MIG instance, "MIG-...", as NVML and nvidia-smi have it
  std::string pci;           // "0000:65:00.0"
  int major = 0, minor = 0;  // compute capability
  int64_t memory_bytes = 0;  // all it has
  bool operator==(const DeviceFacts&) const = default;
};

// Thread-safe.
class Driver {
 public:
  // Opens `library`, a name that the system's loader finds or a path, and starts the driver. kNotFound where
  // there is no such library, kUnsupported where it cannot be used; both say what mends it.
  static Result<std::shared_ptr<const Driver>> Open(const std::string& library = kDriverLibrary);

  int version() const { return version_; }  // the newest CUDA it can serve: 12040 is 12.4
  const std::vector<DeviceFacts>& devices() const { return devices_; }  // may be empty

  // `what` is said first, then the driver's words and, where one is known, the remedy. kOverloaded for
  // memory that is not there, kInternal otherwise.
  Status Check(cuda::Return error, std::string_view what) const;
  // Whether the error is one after which nothing in this process can use the device any more.
  static bool IsSticky(cuda::Return error);

#define WEIR_DECLARE(member, name, parameters) cuda::Return(*member) parameters = nullptr;
  WEIR_CUDA_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE

 private:
  Driver() = default;
  Status Bind(const std::string& library);
  Status Start();
  Status FindDevices();
  std::string Words(cuda::Return error) const;

  cuda::Return (*error_name_)(cuda::Return, const char**) = nullptr;
  cuda::Return (*error_string_)(cuda::Return, const char**) = nullptr;
  int version_ = 0;
  std::vector<DeviceFacts> devices_;
};
using DriverPtr = std::shared_ptr<const Driver>;

// "13.0" of 13000.
std::string VersionText(int version);

}  // namespace weir::gpu
