// A balancer of others in front of several servers: HAProxy, nginx or Envoy.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "launch/server.h"

namespace weir::launch {

enum class BalancerKind : uint8_t { kHaproxy, kNginx, kEnvoy };
inline constexpr std::array kBalancerKinds = {BalancerKind::kHaproxy, BalancerKind::kNginx,
                                              BalancerKind::kEnvoy};
std::string_view ToString(BalancerKind kind);  // "haproxy", "nginx", "envoy": also the programs' names

struct BalancerOptions {
  BalancerKind kind = BalancerKind::kHaproxy;
  bool grpc = false;                  // HTTP/2 on both sides; otherwise HTTP/1.1
  std::vector<std::string> backends;  // "HOST:PORT"
  std::string folder;                 // for its configuration and its files; this process may write there
  const NetworkLink* link = nullptr;  // on its far side; must outlive it
  Duration start_timeout = 60s;
};

// Returns the configuration of the balancer at `address`:`port`: one worker, each request to the next server
// in turn; a lost connection and a 503 are tried once more, on another server, where the program can.
std::string BalancerConfig(const BalancerOptions& options, const std::string& address, int port);

// Starts the balancer; its port is in ports.http and in ports.grpc. kUnsupported, with the remedy, if the
// program is neither in PATH nor in /usr/sbin; otherwise as StartServer.
LaunchResult<StartedServer> StartBalancer(const BalancerOptions& options, const Clock& clock);

// Returns the path of the program. kUnsupported as StartBalancer.
Result<std::string> FindBalancer(BalancerKind kind);

}  // namespace weir::launch
