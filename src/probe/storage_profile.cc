#include "probe/storage_profile.h"

#include <fmt/format.h>

namespace weir::probe {
namespace {

constexpr std::string_view kV2 = "MLPerf Storage v2", kV3 = "MLPerf Storage v3";

constexpr StorageProfile kProfiles[] = {
    {"unet3d-a100", 146'600'628, 68'341'808, 7, 636ms, 0.90, kV2},
    {"unet3d-h100", 146'600'628, 68'341'808, 7, 323ms, 0.90, kV2},
    {"unet3d-b200", 146'600'628, 68'341'808, 7, 162ms, 0.90, kV3},
    {"resnet50-a100", 114'660, 0, 400, 435ms, 0.90, kV2},
    {"resnet50-h100", 114'660, 0, 400, 224ms, 0.90, kV2},
    {"cosmoflow-a100", 2'828'486, 71'311, 1, 5510us, 0.70, kV2},
    {"cosmoflow-h100", 2'828'486, 71'311, 1, 3500us, 0.70, kV2},
    {"retinanet-a100", 153'600, 51'200, 16, 210ms, 0.85, kV2},
    {"retinanet-h100", 153'600, 51'200, 16, 180ms, 0.85, kV2},
    {"retinanet-b200", 322'957, 0, 24, 47'550us, 0.85, kV3},
    {"retinanet-mi355", 322'957, 0, 32, 63'400us, 0.85, kV3},
};

}  // namespace

std::span<const StorageProfile> StorageProfiles() { return kProfiles; }

Result<StorageProfile> FindStorageProfile(std::string_view name) {
  std::string names;
  for (const StorageProfile& profile : kProfiles) {
    if (profile.name == name) return profile;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", profile.name);
  }
  return Fail(ErrorCode::kNotFound, fmt::format("there is no profile \"{}\"; there are {}", name, names));
}

double SamplesPerSecond(const StorageProfile& profile) {
  return profile.step > Duration{} ? profile.batch / Seconds(profile.step) : 0;
}

double BytesPerSecond(const StorageProfile& profile) {
  return SamplesPerSecond(profile) * profile.sample_bytes;
}

}  // namespace weir::probe
