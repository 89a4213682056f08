#include "infer/engine.h"

#include <fmt/format.h>

#include "infer/engines/emulated.h"
#include "infer/engines/onnxruntime.h"
#include "infer/engines/openvino.h"

namespace weir::infer {

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view spec, const Clock& clock) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  const std::string_view settings = spec.substr(std::min(name.size() + 1, spec.size()));
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
  return name == "openvino" ? OpenOpenVino(clock) : OpenOnnxRuntime(clock);
}

}  // namespace weir::infer
