// A small set of measurements whose law is known, as files: what `weir fit` reads.
#pragma once

#include <string>

#include "base/error.h"

namespace weir::predict {

// Four networks on six kinds of hardware ("gpu-a" to "gpu-f"), batches 8, 32, 64 on 1, 2 and 4 devices: 216
// rows "r0" to "r215", noise of 2 %. Hardware "gpu-new" is in the table but was never measured.
struct MadeSet {
  std::string spec;                // made.yaml
  std::string rows;                // made.csv
  std::string hardware, networks;  // hardware.csv, networks.csv

  // Returns the rate that the law gives for one row, without the noise.
  static double ItemsPerSecond(const std::string& gpu, const std::string& network, double batch, int devices);
  static MadeSet Make();
  // Writes the four files; gives the path of the SPEC.
  Result<std::string> WriteTo(const std::string& folder) const;
};

}  // namespace weir::predict
