// From facts to findings. Pure; the texts that people read are here.
#pragma once

#include <vector>

#include "probe/finding.h"
#include "probe/host_facts.h"

namespace weir::probe {

// All findings, in the order in which a person wants them: engines, CPU, memory, limits, time, load, devices.
std::vector<Finding> JudgeHost(const HostFacts& facts);

}  // namespace weir::probe
