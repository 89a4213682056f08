// The results and the texts of probes, from their reports. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text_style.h"
#include "probe/host_speed.h"
#include "probe/storage_etl.h"
#include "probe/storage_hosts.h"
#include "probe/storage_phases.h"
#include "probe/storage_session.h"
#include "results/probe_result.h"

namespace weir::probe {

// Each result lacks its provenance, which is the caller's.
results::StorageProbeResult MakeResult(const TrainReport& report);
results::StorageProbeResult MakeResult(const HostsReport& report);
results::StorageProbeResult MakeResult(const EtlReport& report);
results::StorageProbeResult MakeResult(const InferReport& report);
results::StorageProbeResult MakeResult(const StreamReport& report);
results::StorageProbeResult MakeResult(const MixReport& report);
// The result of "all", from those of its phases.
results::StorageProbeResult MakeResult(std::vector<results::StorageProbeResult> phases);
results::HostProbeResult MakeResult(const HostReport& report);

// Lines for people.
std::string ProbeText(const TextStyle& style, const results::StorageProbeResult& result);
std::string ProbeText(const TextStyle& style, const results::HostProbeResult& result);

}  // namespace weir::probe
