// The parts of a level's response time: on the client, on the way, and by the server's own account. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "infer/server_times.h"
#include "load/session/level_result.h"
#include "load/verdict/split.h"

namespace weir::load {

// A server's account of a request on average: from its durations with each response if it was asked for them,
// else from its statistics.
struct ServerAccount {
  std::optional<infer::MeanServerTimes> times;  // absent: none was reported, or not of our requests
  std::string left_out;                         // why a reported account is not used
};
ServerAccount ServerAccountOf(const LevelResult& level);

// The mean response time in parts that add up to it, in milliseconds. Absent: not known.
struct MeanSplit {
  double slip = 0, client_receive = 0;
  std::optional<double> client_send;  // of all requests, also those whose sending time is not known
  double wire_and_wait = 0;
  std::optional<infer::MeanServerTimes> server;
};
// Returns nullopt if nothing was answered. Sending that the server counts as its own time counts once.
std::optional<MeanSplit> MeanSplitOf(const LevelResult& level,
                                     const std::optional<infer::MeanServerTimes>& server);

// The requests above a percentile.
struct SlowestRequests {
  int64_t requests = 0;
  Split mean;  // nanoseconds
};
// `percentile`: 0 to 100. Returns nullopt if there are too few requests for it, or their parts are not known.
std::optional<SlowestRequests> SlowestOf(const LevelResult& level, double percentile);

// The percentile above which requests are called slow: the one asked for, else 99.
double SlowPercentile(const LoadOptions& options);

// Returns the mean of a histogram of nanoseconds in milliseconds; nullopt if it is empty.
std::optional<double> MeanMs(const stats::Histogram& times);

}  // namespace weir::load
