// Facts about the link of a connection: its interface, offloads, and RDMA devices of this host.
#pragma once

#include <string>
#include <vector>

#include "results/network_probe_result.h"

namespace weir::probe {

// The interface that has the address `host` of this machine. Values that cannot be read are left out.
results::NetworkProbeResult::Link FindLink(const std::string& host);

// RDMA devices by libibverbs, where that library is installed; else by the kernel's list.
std::vector<results::NetworkProbeResult::Rdma> FindRdma(const std::string& sysfs = "/sys");

}  // namespace weir::probe
