#include "cli/probe_network.h"

#include <string>

#include "cli/console.h"
#include "cli/flags.h"
#include "cluster/join.h"
#include "probe/network_data.h"
#include "probe/network_probe.h"
#include "record/provenance.h"
#include "results/verdict.h"

namespace weir::cli {
namespace {

struct NetworkFlags {
  cluster::JoinOptions join;
  std::string sizes, streams, json;
  double seconds = 1;
};

Result<int> Probe(const NetworkFlags& flags, const Console& console) {
  probe::NetworkOptions options{.length = FromSeconds(flags.seconds)};
  if (!flags.sizes.empty())
    options.message_bytes =
        TRY_CONTEXT(probe::ParseSizes(flags.sizes, probe::kMostNetworkBytes), "--message-bytes");
  if (!flags.streams.empty()) {
    options.streams.clear();
    for (const uint64_t count : TRY_CONTEXT(probe::ParseSizes(flags.streams, 256), "--streams"))
      options.streams.push_back(static_cast<int>(count));
  }
  const Interrupt interrupt;
  const SteadyClock clock;
  const cluster::Address peer = TRY(cluster::ParseAddress(flags.join.hosts));
  const cluster::JoinedAgents agents = TRY(cluster::JoinAgents(flags.join, clock, interrupt.token()));
  results::NetworkProbeResult result =
      TRY(probe::ProbeNetwork(*agents.cluster, peer, options, clock, interrupt.token()));
  result.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  console.Text(probe::ProbeText(console.style(), result));
  TRY_STATUS(console.Json(result.ToJson()));
  return result.verdict == ToString(results::Standing::kInvalid) ? kClaimInvalid : kDone;
}

}  // namespace

int ProbeNetworkVerb(const Arguments& arguments) {
  NetworkFlags flags;
  Flags parser(
      "probe network",
      "Measures the network to another host, where weir agent runs: throughput, latency at the sizes "
      "of inference, images per second.",
      "weir probe network 10.0.0.2:7007 --token-file token");
  parser.Required("HOST:PORT", flags.join.hosts, "Address at which weir agent listens on the other host.");
  parser.Text("--token-file", flags.join.token_file,
              "File with the token that the agent shares; needed beyond this machine.");
  parser.Text("--streams", flags.streams, "Numbers of streams at once (default 1,2,4).");
  parser.Text("--message-bytes", flags.sizes,
              "Sizes of messages (default 64,4096,110000,150528,602112,5000000).");
  parser.Number("--seconds", flags.seconds, 0.05, 3600, "Seconds of each measurement (default 1).");
  parser.Text("--json", flags.json, "JSON file for the result; - for standard output.");
  if (const auto status = parser.Parse(arguments)) return *status;
  const Console console(flags.json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const auto status = Probe(flags, console);
  if (status) return *status;
  FailWith(status.error());
  return status.error().code == ErrorCode::kCancelled ? kInterrupted : ExitStatus(status.error());
}

}  // namespace weir::cli
