#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <thread>

#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "monitor/run_command.h"
#include "monitor/usage_text.h"
#include "monitor/watch.h"
#include "record/provenance.h"
#include "results/monitor_result.h"

namespace weir::cli {
namespace {

// The command's own exit status, as a shell tells it; 126 and 127 where it could not be run.
int MonitorCommand(const Console& console, const Arguments& command,
                   const monitor::ResourceMonitor::Options& options, bool wants_json) {
  const SteadyClock clock;
  const auto usage = monitor::RunAndMonitor(command, clock, options);
  if (!usage) {
    FailWith(usage.error());
    return usage.error().code == ErrorCode::kNotFound ? 127 : 126;
  }
  fmt::print(stderr, "{}", monitor::UsageText(console.style(), *usage));
  if (!wants_json) return usage->exit_status;
  const results::MonitorResult result{
      .exit_status = usage->exit_status,
      .signal = usage->signal != 0 ? std::optional(usage->signal) : std::nullopt,
      .wall_s = usage->wall_s,
      .user_s = usage->user_s,
      .system_s = usage->system_s,
      .max_resident_bytes = usage->max_resident_bytes,
      .resources = usage->resources,
      .command = record::CommandLine(command)};
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return usage->exit_status;
}

// Asks `end` to stop once standard input has ended.
void WatchInput(const std::stop_token& given_up, std::stop_source end) {
  constexpr int kLookMs = 100;
  char dropped[4096];
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (!given_up.stop_requested()) {
    const int ready = ::poll(&input, 1, kLookMs);
    if (ready > 0 && ::read(STDIN_FILENO, dropped, sizeof dropped) <= 0) {
      end.request_stop();
      return;
    }
  }
}

int MonitorProcesses(const Console& console, const monitor::ResourceMonitor::Options& options,
                     bool until_eof) {
  std::stop_source end;
  const Interrupt interrupt;
  const std::stop_callback interrupted(interrupt.token(), [&] { end.request_stop(); });
  std::jthread input;
  if (until_eof) input = StartThread("input", [&](std::stop_token stop) { WatchInput(stop, end); });
  const SteadyClock clock;
  const auto used = monitor::WatchUntilTheyEnd(clock, options, end.get_token());
  if (!used) return FailWith(used.error());
  fmt::print(stderr, "{} {:.3f} s\n{}", console.Bold("wall time"), used->wall_s,
             monitor::ResourceText(console.style(), *used));
  const results::MonitorResult result{.pids = options.processes, .wall_s = used->wall_s, .resources = *used};
  if (const Status written = console.Json(result.ToJson()); !written) return FailWith(written.error());
  return kDone;  // Ctrl-C is how one ends it
}

}  // namespace

int MonitorVerb(const Arguments& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  const Arguments command(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  std::string json;
  std::vector<int> pids;
  int period_ms = 100;
  bool until_eof = false;
  Flags flags("monitor",
              "Runs any command and reports the resources that it and its children used, or watches running "
              "processes.",
              "weir monitor -- python3 train.py");
  flags.Integers("--pid", pids,
                 "process ids to watch, with their children, instead of a command, until they end or Ctrl-C");
  flags.Switch("--until-eof", until_eof,
               "end when standard input ends, with --pid, so that another program can bound the measurement");
  flags.Integer("--period-ms", period_ms, 1, 60'000, "milliseconds between samples");
  flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  const bool bare = dashes == arguments.end() && !arguments.empty() && !arguments.front().starts_with('-');
  if (const auto status = bare ? std::nullopt : flags.Parse({arguments.begin(), dashes})) return *status;
  if (command.empty() == pids.empty()) {
    return FailWith(
        {ErrorCode::kInvalidArgument,
         "monitor wants a command after --, as in: weir monitor -- sleep 1, or --pid, and not both"});
  }
  if (until_eof && pids.empty())
    return FailWith({ErrorCode::kInvalidArgument, "--until-eof goes with --pid: a command ends by itself"});
  const Console console(json);
  if (const Status writable = console.CheckJson(); !writable) return FailWith(writable.error());
  const monitor::ResourceMonitor::Options options{.processes = pids,
                                                  .period = std::chrono::milliseconds(period_ms)};
  return pids.empty() ? MonitorCommand(console, command, options, !json.empty())
                      : MonitorProcesses(console, options, until_eof);
}

}  // namespace weir::cli
