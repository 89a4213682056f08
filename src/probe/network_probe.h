// How fast the network to another host is, for inference: throughput by streams and message size, the
// latency of messages, and the images that the link carries.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text_style.h"
#include "cluster/cluster.h"
#include "results/network_probe_result.h"

namespace weir::probe {

struct NetworkOptions {
  std::vector<int> streams = {1, 2, 4};
  uint64_t stream_message_bytes = uint64_t{1} << 20;
  // A frame's header, a page, a JPEG, a picture as 8-bit pixels, the same as 32-bit floats, a camera's photo.
  std::vector<uint64_t> message_bytes = {64, 4096, 110'000, 150'528, 602'112, 5'000'000};
  Duration length = 1s;  // of each measurement, beside the time that is left out
};

// `peer`: HOST:PORT of the one agent of `hosts`. Blocks. The result lacks its provenance. kIo if the agent or
// a connection is lost, kCancelled after a stop.
Result<results::NetworkProbeResult> ProbeNetwork(cluster::Cluster& hosts, const cluster::Address& peer,
                                                 const NetworkOptions& options, const Clock& clock,
                                                 const std::stop_token& stop);

std::string ProbeText(const TextStyle& style, const results::NetworkProbeResult& result);

// Parses a list of sizes such as "64,4096". kInvalidArgument.
Result<std::vector<uint64_t>> ParseSizes(const std::string& text, uint64_t most);

}  // namespace weir::probe
