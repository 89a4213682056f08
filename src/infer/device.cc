#include "infer/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json.h"

namespace weir::infer {
namespace {

constexpr int kMostDevices = 64;

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number >= kMostDevices)
    return std::nullopt;
  return number;
}

bool IsUuid(std::string_view text) {
  if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) return false;
  text.remove_prefix(4);
  return !text.empty() && text.size() <= 80 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '/';
  });
}

// Whether there may be several, each with a number.
bool IsCounted(Device::Kind kind) { return kind == Device::Kind::kCuda || kind == Device::Kind::kGpu; }

std::unexpected<Error> NoDevice(std::string_view text) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("\"{}\" is no device: use cpu, cuda:N, cuda:all or cuda:UUID (NVIDIA), gpu:N or "
                          "npu (Intel, with the engine openvino)",
                          EscapeBytes(text.substr(0, 80))));
}

}  // namespace

std::string ToString(const Device& device) {
  const std::string_view kind = ToString(device.kind);
  if (!IsCounted(device.kind)) return std::string(kind);
  if (!device.uuid.empty()) return fmt::format("{}:{}", kind, device.uuid);
  return device.index == Device::kAll ? fmt::format("{}:all", kind)
                                      : fmt::format("{}:{}", kind, device.index);
}

Result<Device> ParseDevice(std::string_view text) {
  const size_t colon = text.find(':');
  const auto kind = FindChoice(kDeviceKinds, text.substr(0, colon));
  if (!kind) return NoDevice(text);
  Device device{.kind = *kind, .index = 0, .uuid = {}};
  if (colon == std::string_view::npos) return device;
  if (!IsCounted(*kind)) return NoDevice(text);
  const std::string_view which = text.substr(colon + 1);
  if (const auto index = Number(which)) {
    device.index = *index;
  } else if (kind == Device::Kind::kCuda && which == "all") {
    device.index = Device::kAll;
  } else if (kind == Device::Kind::kCuda && IsUuid(which)) {
    device.uuid = which;
  } else {
    return NoDevice(text);
  }
  return device;
}

Result<std::vector<Device>> ParseDevices(std::string_view text) {
  std::vector<Device> devices;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const bool is_number = !devices.empty() && IsCounted(devices.back().kind) && Number(part);
    Device device = TRY(ParseDevice(is_number ? fmt::format("{}:{}", ToString(devices.back().kind), part)
                                              : std::string(part)));
    if (std::ranges::find(devices, device) != devices.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("device {} is named twice: name it once, and give it more instances with "
                              "--streams or a count in instance_group",
                              ToString(device)));
    devices.push_back(std::move(device));
    if (devices.front().kind != devices.back().kind)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} and {} are devices of two kinds: one model computes on one kind",
                              ToString(devices.front()), ToString(devices.back())));
    if (devices.size() > kMostDevices)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("more than {} devices", kMostDevices));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  const bool has_all =
      std::ranges::any_of(devices, [](const Device& device) { return device.index == Device::kAll; });
  if (has_all && devices.size() > 1)
    return Fail(ErrorCode::kInvalidArgument, "cuda:all names every GPU: leave the other devices out");
  return devices;
}

std::string ToString(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) text += (text.empty() ? "" : ",") + ToString(device);
  return text.empty() ? ToString(Device()) : text;
}

bool IsAccelerator(const std::vector<Device>& devices) {
  return std::ranges::any_of(devices, [](const Device& device) { return device.kind != Device::Kind::kCpu; });
}

}  // namespace weir::infer
