// Where the time of a batch went on an accelerator, by its own clock.
#pragma once

#include "base/clock.h"

namespace weir::infer {

struct DeviceStages {
  Duration upload{}, compute{}, download{};
  Duration whole() const { return upload + compute + download; }
  bool operator==(const DeviceStages&) const = default;
};

}  // namespace weir::infer
