// Properties of this machine, and conditions that would spoil a measurement: `weir doctor`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "probe/finding.h"

namespace weir::probe {

struct HostProbeOptions {
  std::string folder = ".";  // whose disk is told of
  Duration watch = 200ms;    // how long the other processes are watched
};

// Reads what the kernel and the libraries tell, and measures for `watch` what the timer and the other
// processes do. What cannot be read is said or left out; nothing fails. `clock` is the steady one. Blocks for
// `watch` and what the opening of the engines takes.
std::vector<Finding> ProbeHost(const Clock& clock, const HostProbeOptions& options = {});

}  // namespace weir::probe
