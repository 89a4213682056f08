// The result of `weir probe network --json`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct NetworkProbeResult {
  // One stretch of messages without answers.
  struct Throughput {
    int streams = 1;
    uint64_t message_bytes = 0;
    double gbit_per_s = 0;
    std::optional<double> cpu_ns_per_byte;            // of both ends
    double busiest_sender = 0, busiest_receiver = 0;  // shares of a core
    bool operator==(const Throughput&) const = default;
  };
  struct Times {
    std::optional<double> p50, p90, p99, max;
    int64_t count = 0;
    bool operator==(const Times&) const = default;
  };
  // A message of the sizes that inference sends, and a short answer.
  struct Message {
    uint64_t bytes = 0;
    Times latency_us;
    std::optional<double> cpu_ns_per_byte;  // of both ends
    std::optional<double> images_per_s;     // messages a second without answers
    bool operator==(const Message&) const = default;
  };
  struct Link {
    std::string interface, congestion_control;
    int mtu = 0;
    std::optional<double> speed_gbit_per_s;  // by the driver
    int64_t retransmits = 0;                 // of all streams
    std::vector<std::string> offloads;       // that are on
    bool operator==(const Link&) const = default;
  };
  struct Rdma {
    std::string device;
    std::vector<std::string> ports;  // "1: ACTIVE, 100 Gb/sec (4X EDR)"
    bool operator==(const Rdma&) const = default;
  };
  struct Cause {
    std::string reason, evidence;
    bool operator==(const Cause&) const = default;
  };

  std::string peer;                  // HOST:PORT of the agent
  double throughput_gbit_per_s = 0;  // the best
  std::vector<Throughput> throughputs;
  std::vector<Message> messages;
  Link link;
  std::vector<Rdma> rdma;
  std::optional<double> foreign_cores, steal_percent;  // of this host
  std::string verdict;                                 // "VALID", "SUSPECT", "INVALID"
  std::vector<Cause> reasons;
  Json provenance = Json::object();

  Json ToJson() const;
  static Result<NetworkProbeResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const NetworkProbeResult&) const = default;
};

}  // namespace weir::results
