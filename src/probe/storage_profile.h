// The demand of emulated training jobs, as MLPerf Storage publishes it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace weir::probe {

struct StorageProfile {
  std::string_view name;
  double sample_bytes = 0;            // mean size of a sample
  double sample_deviation_bytes = 0;  // standard deviation of that size
  int batch = 1;                      // samples of a step and accelerator
  Duration step{};                    // compute time of a step
  double least_utilisation = 0.9;     // below it an accelerator counts as not fed
  std::string_view source = {};       // of a published one: "MLPerf Storage v2"
};

// Profiles of MLPerf Storage v2 (A100, H100) and v3 (B200, MI355), from the configurations of
// mlcommons/storage.
std::span<const StorageProfile> StorageProfiles();
// kNotFound lists the names there are.
Result<StorageProfile> FindStorageProfile(std::string_view name);

// Demand of one accelerator that never waits.
double SamplesPerSecond(const StorageProfile& profile);
double BytesPerSecond(const StorageProfile& profile);

}  // namespace weir::probe
