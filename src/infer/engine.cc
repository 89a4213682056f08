#include "infer/engine.h"

#include <fmt/format.h>

#include "base/count.h"
#include "infer/engines/emulated.h"
#include "infer/engines/onnxruntime.h"
#include "infer/engines/openvino.h"
#include "infer/engines/ort_cuda.h"

namespace weir::infer {

namespace {

// Whether the engine has the kind of the devices; which of them are there is found out by Load.
Status CheckDevices(std::string_view engine, const std::vector<Device>& devices) {
  if (!IsAccelerator(devices)) return {};
  const bool is_cuda = devices.front().kind == Device::Kind::kCuda;
  const auto refuse = [&](const char* why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("device {}: {}", ToString(devices), why));
  };
  if (engine == "emulated") return refuse("the engine emulated stands for a device: leave the device out");
  if (engine == "openvino" && is_cuda)
    return refuse("the engine openvino has no CUDA: use --engine onnxruntime, or gpu:N or npu of Intel");
  if (engine == "onnxruntime" && !is_cuda)
    return refuse("the engine onnxruntime has only cpu and cuda here: use --engine openvino for it");
  return {};
}

}  // namespace

std::vector<int> WarmBatches(int most) {
  std::vector<int> sizes;
  for (int size = 1; size < most; size *= 2) {
    sizes.push_back(size);
    if (size > 1 && size / 2 * 3 < most) sizes.push_back(size / 2 * 3);
  }
  sizes.push_back(most);
  return sizes;
}

std::string PlacesText(const Session& session) {
  const std::vector<int> gpus = session.gpus();
  if (!gpus.empty())
    return fmt::format("{} on cuda:{}", Count(session.streams(), "instance"), fmt::join(gpus, ", cuda:"));
  return fmt::format("{} in {}", Count(session.threads(), "thread"), Count(session.streams(), "stream"));
}

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view spec, const Clock& clock,
                                           const std::vector<Device>& devices) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  const std::string_view settings = spec.substr(std::min(name.size() + 1, spec.size()));
  TRY_STATUS(CheckDevices(name, devices));
  if (name == "emulated") return MakeEmulatedEngine(TRY(ParseEmulatedOptions(settings)), clock);
  if (name != "onnxruntime" && name != "openvino") {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("unknown engine '{}': use onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms",
                    name));
  }
  if (!settings.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("engine {} takes no settings in its name, but '{}' is given", name, settings));
  }
  if (name == "openvino") return OpenOpenVino(clock);
  return IsAccelerator(devices) ? OpenOrtCuda(clock, devices) : OpenOnnxRuntime(clock);
}

}  // namespace weir::infer
