// Activity of NVIDIA's GPUs, by the management library (NVML) that comes with their driver. It is opened
// while the program runs and nothing is linked: without it there are no GPUs to tell of, and no error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::monitor {

class GpuActivity;

constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

struct GpuDevice {
  std::string name;  // as NVML calls it; " (MIG)" behind it where it is divided into instances
  std::optional<int64_t> memory_bytes;                 // all it has
  std::string uuid;                                    // as CUDA has it; empty: not told
  bool is_divided = false;                             // into instances (MIG)
  std::optional<bool> persistent;                      // the driver stays loaded while nobody uses it
  std::optional<int> pcie_width, pcie_most;            // lanes now, and at most
  std::optional<double> power_limit_w, usual_limit_w;  // in force, and as the card is sold
  std::optional<double> most_clock_mhz;                // of the multiprocessors
};

// One device at one moment. What the device, its driver or our rights do not tell is absent.
struct GpuSample {
  // Share of the time in which some kernel ran, 0 to 100, over NVML's own window: 1/6 s to 1 s, by product.
  std::optional<double> percent;
  std::optional<int64_t> memory_bytes;    // in use, the driver's own part left out where it tells that apart
  std::optional<double> energy_j;         // since the driver was loaded; it moves in steps
  std::optional<double> power_watts;      // now, or over the last second, by product
  std::optional<double> clock_mhz;        // of the multiprocessors
  std::optional<uint64_t> clock_reasons;  // what holds the clocks down: a mask for ClockReasons
  // Activities of its parts since the sample before (GPM), 0 to 100; on Hopper and newer.
  std::optional<double> graphics_percent, sm_percent, tensor_percent, dram_percent, jpeg_percent;
  std::optional<double> pcie_sent_mib_s, pcie_received_mib_s;
  std::optional<int64_t> ecc_errors;  // uncorrected, since the driver was loaded
  std::optional<int64_t> neighbours;  // processes of others that compute on it
  std::optional<int64_t> xid;         // the last critical error since Open; absent: none
};

// The names of what a mask says holds the clocks down: "application_clocks", "power_cap",
// "hardware_slowdown", "sync_boost", "software_thermal", "hardware_thermal", "power_brake", "display_clocks";
// "unknown_0x..." for a bit that came later than this program. That a GPU is idle (bit 0) holds nothing down
// and is left out.
std::vector<std::string> ClockReasons(uint64_t mask);

// The devices of this machine. Thread-safe (NVML is).
class GpuReader {
 public:
  // Opens the library `library`, a name that the system's loader finds or a path, and looks up the devices;
  // takes some tens of milliseconds the first time in a process, or as long as a driver that sleeps takes to
  // wake. kNotFound: there is no such library, in the loader's words. kUnsupported: it is not NVML, or it
  // cannot be used (no driver, no rights, no device), in its own words.
  static Result<std::unique_ptr<GpuReader>> Open(const std::string& library = kNvmlLibrary);
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  const std::vector<GpuDevice>& devices() const { return devices_; }  // at least one
  const std::string& driver() const { return driver_; }               // its version; empty: not told
  std::vector<GpuSample> Read() const;                                // one for each device, in their order

 private:
  struct Nvml;
  explicit GpuReader(std::unique_ptr<Nvml> nvml);
  Status FindDevices();

  const std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<GpuActivity> activity_;  // before nvml_ is let go
  std::vector<void*> handles_;             // of devices_
  std::vector<GpuDevice> devices_;
  std::string driver_;
};

}  // namespace weir::monitor
