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
#include "monitor/watch.h"
#include "record/provenance.h"
#include "results/monitor_result.h"

namespace weir::cli {
namespace {

std::string Line(const char* what, const std::optional<monitor::Range>& range, const char* unit,
                 double scale) {
  if (!range) return "";
  return fmt::format("  {:<22}{}{}{}  ({} to {})\n", what, Short(range->mean * scale), *unit == 0 ? "" : " ",
                     unit, Short(range->min * scale), Short(range->max * scale));
}

std::string BytesLine(const char* what, const std::optional<int64_t>& in, const char* in_verb,
                      const std::optional<int64_t>& out, const char* out_verb) {
  if (!in || !out) return "";
  return fmt::format("  {:<22}{} {}, {} {}\n", what, Size(static_cast<double>(*in)), in_verb,
                     Size(static_cast<double>(*out)), out_verb);
}

std::string GpuLines(const monitor::Resources& r) {
  if (r.gpu_label.empty()) return "";
  std::string text = fmt::format("  {:<22}{}, {} samples of {:.0f} ms\n", "GPU", EscapeBytes(r.gpu_label),
                                 r.gpu_samples, r.gpu_period_ms);
  text += Line("  busy", r.gpu_percent, "%", 1);
  text += Line("  memory", r.gpu_memory_bytes, "MB", 1e-6);
  text += Line("  power", r.gpu_power_watts, "W", 1);
  text += Line("  clock", r.gpu_clock_mhz, "MHz", 1);
  for (const auto& [reason, share] : r.gpu_throttled) {
    text += fmt::format("  {:<22}{} in {:.0f} % of the samples\n", "  held down by", reason, 100 * share);
  }
  return text;
}

// Returns lines about waits; nothing for kinds that did not occur.
std::string WaitLines(const monitor::Resources& r) {
  std::string text;
  const std::pair<const char*, std::optional<double>> shares[] = {{"CPU", r.cpu_pressure_percent},
                                                                  {"memory", r.memory_pressure_percent},
                                                                  {"storage", r.io_pressure_percent}};
  for (const auto& [what, share] : shares) {
    if (share && *share >= 0.005)
      text += fmt::format("{}{} {:.2f} %", text.empty() ? "" : ", ", what, *share);
  }
  if (!text.empty()) text = fmt::format("  {:<22}{} of the time\n", "something waited for", text);
  if (r.throttled_s && *r.throttled_s > 0) {
    text +=
        fmt::format("  {:<22}{} s, by the control group's CPU quota\n", "held back", Short(*r.throttled_s));
  }
  if (r.steal_percent) {
    text += fmt::format("  {:<22}{:.2f} % of the machine's CPU time\n", "stolen", *r.steal_percent);
  }
  return text;
}

std::string ResourceText(const Console& console, const monitor::Resources& r) {
  std::string text = fmt::format("{} mean (min to max) over {} samples of {:.0f} ms\n", console.Bold("used"),
                                 r.samples, r.period_ms);
  text += Line("CPU, processes", r.app_cpu, "cores", 1);
  text += Line("CPU, machine", r.server_cpu, "cores", 1);
  text += Line("memory, resident", r.process_memory_bytes, "MB", 1e-6);
  text += Line("memory, container", r.container_memory_bytes, "MB", 1e-6);
  text += Line("memory, machine", r.host_memory_bytes, "MB", 1e-6);
  text += Line("threads", r.threads, "", 1);
  text += BytesLine("storage, processes", r.read_bytes, "read", r.written_bytes, "written");
  text += BytesLine("disks, machine", r.disk_read_bytes, "read", r.disk_written_bytes, "written");
  text += BytesLine("network, machine", r.received_bytes, "received", r.sent_bytes, "sent");
  text += GpuLines(r);
  text += WaitLines(r);
  text += fmt::format("  {:<22}{} cores", "this monitor", Short(r.observer_cpu));
  if (r.observer_us_per_sample) text += fmt::format(", {} us a sample", Short(*r.observer_us_per_sample));
  return text + "\n";
}

std::string ResultText(const Console& console, const monitor::CommandUsage& usage) {
  std::string text = fmt::format("{} {:.3f} s; CPU {:.3f} s user, {:.3f} s system", console.Bold("wall time"),
                                 usage.wall_s, usage.user_s, usage.system_s);
  if (usage.max_resident_bytes) {
    text += fmt::format("; largest process {}", Size(static_cast<double>(*usage.max_resident_bytes)));
  }
  return text + "\n" + ResourceText(console, usage.resources);
}

// The command's own exit status, as a shell tells it; 126 and 127 where it could not be run.
int MonitorCommand(const Console& console, const Arguments& command,
                   const monitor::ResourceMonitor::Options& options, bool wants_json) {
  const SteadyClock clock;
  const auto usage = monitor::RunAndMonitor(command, clock, options);
  if (!usage) {
    FailWith(usage.error());
    return usage.error().code == ErrorCode::kNotFound ? 127 : 126;
  }
  fmt::print(stderr, "{}", ResultText(console, *usage));
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
             ResourceText(console, *used));
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
  Flags flags(
      "monitor",
      "Runs any command and says what it and the processes it starts used, or watches processes that run.",
      "weir monitor -- python3 train.py");
  flags.Integers(
      "--pid", pids,
      "watch these and what they start, instead of a command, until they end or Ctrl-C is pressed");
  flags.Switch("--until-eof", until_eof,
               "with --pid: end when standard input ends, too, so that another program, or one on another "
               "machine, bounds what is measured");
  flags.Integer("--period-ms", period_ms, 1, 60'000, "between samples");
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
