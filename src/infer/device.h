// The devices that a model computes on, as people name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/error.h"

namespace weir::infer {

struct Device {
  enum class Kind {
    kCpu,
    kCuda,  // NVIDIA's GPUs, through CUDA
    kGpu,   // Intel's GPUs, through OpenVINO
    kNpu,   // Intel's NPU, through OpenVINO
  };
  static constexpr int kAll = -1;

  Kind kind = Kind::kCpu;
  int index = 0;     // of kCuda, as CUDA counts them, or kAll; of kGpu, as OpenVINO counts them
  std::string uuid;  // of kCuda instead of the index: "GPU-..." or "MIG-..."; empty: by index

  bool operator==(const Device&) const = default;
};

inline constexpr Choices<Device::Kind, 4> kDeviceKinds{{{Device::Kind::kCpu, "cpu"},
                                                        {Device::Kind::kCuda, "cuda"},
                                                        {Device::Kind::kGpu, "gpu"},
                                                        {Device::Kind::kNpu, "npu"}}};
constexpr std::string_view ToString(Device::Kind kind) { return WordOf(kDeviceKinds, kind); }

// Returns "cpu", "cuda:0", "cuda:all", "cuda:GPU-...", "gpu:1", "npu".
std::string ToString(const Device& device);

// "cpu", "cuda" or "gpu" for the first one, "cuda:N", "cuda:all", "cuda:UUID", "gpu:N" or "npu".
// kInvalidArgument names what it could be.
Result<Device> ParseDevice(std::string_view text);

// Devices with commas between: all CPU, or all of one kind and each once. A number alone is of the kind
// before it: "cuda:0,1".
Result<std::vector<Device>> ParseDevices(std::string_view text);
std::string ToString(const std::vector<Device>& devices);  // "cpu" where there is none

// Whether `devices` name anything but the CPU.
bool IsAccelerator(const std::vector<Device>& devices);

}  // namespace weir::infer
