#include <fmt/format.h>

#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/probe_network.h"
#include "cli/probe_storage.h"
#include "cli/verbs.h"
#include "probe/probe_result.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

int Host(const Arguments& arguments) {
  std::string json_file;
  int threads = UsableCpus(), budget_ms = 200;
  Flags parser("probe host", "Measures this host: arithmetic, memory, clock, system call, wake-up, loopback.",
               "weir probe host --json host.json");
  parser.Integer("--threads", threads, 1, 4096,
                 "Threads of arithmetic and memory (default: the usable cores).");
  parser.Integer("--budget-ms", budget_ms, 10, 60'000, "Milliseconds of each measurement (default 200).");
  parser.Text("--json", json_file, "JSON file for the result; - for standard output.");
  if (const auto status = parser.Parse(arguments)) return *status;
  const Console console(json_file);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const SteadyClock clock;
  const auto report =
      probe::MeasureHost({.budget = std::chrono::milliseconds(budget_ms), .threads = threads}, clock);
  if (!report) return FailWith(report.error());
  results::HostProbeResult result = probe::MakeResult(*report);
  result.provenance = record::CollectProvenance({.command = CommandLine()}).ToJson();
  console.Text(probe::ProbeText(console.style(), result));
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return kDone;
}

}  // namespace

int ProbeVerb(const Arguments& arguments) {
  const Arguments rest(arguments.empty() ? arguments.end() : arguments.begin() + 1, arguments.end());
  if (!arguments.empty() && arguments.front() == "storage") return ProbeStorageVerb(rest);
  if (!arguments.empty() && arguments.front() == "host") return Host(rest);
  if (!arguments.empty() && arguments.front() == "network") return ProbeNetworkVerb(rest);
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    fmt::print(
        "Measures a storage, a network and this host.\n\nUsage: weir probe SUBCOMMAND ...\n\n"
        "Subcommands:\n"
        "  storage  Accelerators that a storage feeds, frames in time, streams.\n"
        "  network  Throughput and latency to another host, where weir agent runs.\n"
        "  host     Speeds of this host.\n\n"
        "Example:\n  weir probe storage . --samples 200 --accelerators 1:8\n");
    return kDone;
  }
  return FailWith({ErrorCode::kInvalidArgument,
                   "probe wants storage, network or host, as in: weir probe storage . or weir probe host"});
}

}  // namespace weir::cli
