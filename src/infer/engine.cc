#include "infer/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/contains.h"
#include "base/count.h"
#include "infer/choices.h"
#include "infer/engines/emulated.h"
#include "infer/engines/onnxruntime.h"
#include "infer/engines/openvino.h"
#include "infer/engines/ort_cuda.h"

namespace weir::infer {

namespace {

using Opened = Result<std::unique_ptr<Engine>>;

// All that is known of an engine: an entry here, its word in choices.h and a file in engines/ add one.
struct EngineEntry {
  EngineKind kind;
  std::vector<Device::Kind> accelerators;  // beside the CPU
  std::string_view instead;                // what to use for the devices that it lacks
  Opened (*open)(std::string_view settings, const Clock& clock, const std::vector<Device>& devices);
};
const std::vector<EngineEntry>& Table() {
  static const std::vector<EngineEntry> kTable = {
      {EngineKind::kOnnxRuntime,
       {Device::Kind::kCuda},
       "has only cpu and cuda here: use --engine openvino for it",
       [](std::string_view, const Clock& clock, const std::vector<Device>& devices) -> Opened {
         return IsAccelerator(devices) ? OpenOrtCuda(clock, devices) : OpenOnnxRuntime(clock);
       }},
      {EngineKind::kOpenVino,
       {Device::Kind::kGpu, Device::Kind::kNpu},
       "has no CUDA: use --engine onnxruntime, or gpu:N or npu of Intel",
       [](std::string_view, const Clock& clock, const std::vector<Device>&) -> Opened {
         return OpenOpenVino(clock);
       }},
      {EngineKind::kEmulated,
       {},
       "stands for a device: leave the device out",
       [](std::string_view settings, const Clock& clock, const std::vector<Device>&) -> Opened {
         return MakeEmulatedEngine(TRY(ParseEmulatedOptions(settings)), clock);
       }}};
  return kTable;
}

// Whether the engine has the kind of the devices; which of them are there is found out by Load.
Status CheckDevices(const EngineEntry& engine, const std::vector<Device>& devices) {
  if (!IsAccelerator(devices) || Contains(engine.accelerators, devices.front().kind)) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("device {}: the engine {} {}", ToString(devices),
                                                       ToString(engine.kind), engine.instead));
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
  const auto found =
      std::ranges::find_if(Table(), [&](const EngineEntry& entry) { return ToString(entry.kind) == name; });
  if (found == Table().end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("unknown engine '{}': use {}:base=1ms,per_item=1.9ms", name, ListOf(kEngines)));
  }
  TRY_STATUS(CheckDevices(*found, devices));
  if (!settings.empty() && found->kind != EngineKind::kEmulated) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("engine {} takes no settings in its name, but '{}' is given", name, settings));
  }
  return found->open(settings, clock, devices);
}

}  // namespace weir::infer
