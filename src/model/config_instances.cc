#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <string>

#include "infer/device.h"
#include "model/config_message.h"

namespace weir::model {
namespace {

// Groups of CPU instances add up.
Status ReadCpuGroups(const pb::ModelConfig& message, Config& config) {
  int64_t instances = 0;
  for (const auto& group : message.instance_group()) {
    if (!group.gpus().empty())
      return InvalidConfig("instance_group names gpus: give it kind: KIND_GPU, or leave them out");
    instances += std::max(group.count(), 1);
  }
  if (instances > INT_MAX) return InvalidConfig("instance_group has too many instances");
  if (instances > 0) config.parameters.emplace("streams", fmt::format("{}", instances));
  return {};
}

// Each of the GPUs has `count` instances; without gpus all GPUs of the machine are meant.
Status ReadGpuGroups(const pb::ModelConfig& message, Config& config) {
  std::string devices;
  const int count = std::max(message.instance_group(0).count(), 1);
  for (const auto& group : message.instance_group()) {
    if (std::max(group.count(), 1) != count)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("instance_group gives some GPUs {} instances and others {}: give every GPU the "
                              "same count",
                              count, std::max(group.count(), 1)));
    if (group.gpus().empty()) devices += devices.empty() ? "cuda:all" : ",cuda:all";
    for (const int gpu : group.gpus()) devices += fmt::format("{}cuda:{}", devices.empty() ? "" : ",", gpu);
  }
  if (const auto parsed = infer::ParseDevices(devices); !parsed)
    return InvalidConfig(fmt::format("instance_group: {}", parsed.error().message));
  config.parameters.emplace("device", devices);
  config.parameters.emplace("streams", fmt::format("{}", count));
  return {};
}

}  // namespace

Status ReadInstanceGroups(const pb::ModelConfig& message, Config& config) {
  const auto is_gpu = [](const auto& group) { return group.kind() == pb::ModelInstanceGroup::KIND_GPU; };
  const auto& groups = message.instance_group();
  for (const auto& group : groups) {
    if (group.count() < 0) return InvalidConfig("instance_group has a negative count");
  }
  if (std::ranges::none_of(groups, is_gpu)) return ReadCpuGroups(message, config);
  if (std::ranges::all_of(groups, is_gpu)) return ReadGpuGroups(message, config);
  return Fail(ErrorCode::kUnsupported,
              "instance_group has CPU and GPU instances: one model computes on one kind of device");
}

}  // namespace weir::model
