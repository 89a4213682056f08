#include <fmt/format.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "monitor/run_command.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

std::string Line(const char* what, const std::optional<monitor::Range>& range, const char* unit,
                 double scale) {
  if (!range) return "";
  return fmt::format("  {:<22}{} {}  ({} to {})\n", what, Short(range->mean * scale), unit,
                     Short(range->min * scale), Short(range->max * scale));
}

std::string ResultText(const Console& console, const monitor::CommandUsage& usage) {
  const monitor::Resources& r = usage.resources;
  std::string text = fmt::format("{} {:.3f} s; CPU {:.3f} s user, {:.3f} s system; largest process {}\n",
                                 console.Bold("wall"), usage.wall_s, usage.user_s, usage.system_s,
                                 Size(static_cast<double>(usage.max_resident_bytes)));
  text += fmt::format("{} mean (min to max) over {} samples of {:.0f} ms\n", console.Bold("used"), r.samples,
                      r.period_ms);
  text += Line("CPU, command", r.app_cpu, "cores", 1);
  text += Line("CPU, machine", r.server_cpu, "cores", 1);
  text += Line("memory, resident", r.process_memory_bytes, "MB", 1e-6);
  text += Line("memory, machine", r.host_memory_bytes, "MB", 1e-6);
  if (r.read_bytes)
    text += fmt::format("  {:<22}{} read, {} written\n", "storage", Size(static_cast<double>(*r.read_bytes)),
                        Size(static_cast<double>(r.written_bytes.value_or(0))));
  if (r.steal_percent)
    text += fmt::format("  {:<22}{:.2f} % of the machine's CPU time\n", "stolen", *r.steal_percent);
  return text;
}

}  // namespace

int MonitorVerb(const Arguments& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  const Arguments command(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  std::string json;
  int period_ms = 100;
  Flags flags("monitor", "Runs any command and says what it and the processes it starts used.",
              "weir monitor -- python3 train.py");
  flags.Integer("--period-ms", period_ms, 1, 60'000, "between samples");
  flags.Text("--json", json, "write the result as JSON to this file; - for standard output");
  const bool bare = dashes == arguments.end() && !arguments.empty() && !arguments.front().starts_with('-');
  if (const auto status = bare ? std::nullopt : flags.Parse({arguments.begin(), dashes})) return *status;
  if (command.empty()) {
    return FailWith(
        {ErrorCode::kInvalidArgument, "monitor wants a command after --, as in: weir monitor -- sleep 1"});
  }
  const Console console(json);
  const SteadyClock clock;
  const auto usage = monitor::RunAndMonitor(command, clock, {.period = std::chrono::milliseconds(period_ms)});
  if (!usage) {
    FailWith(usage.error());
    return usage.error().code == ErrorCode::kNotFound ? 127 : 126;
  }
  fmt::print(stderr, "{}", ResultText(console, *usage));
  if (!json.empty()) {
    Json result = usage->ToJson();
    result["command"] = record::CommandLine(command);
    if (const Status written = console.Json(result); !written) return FailWith(written.error());
  }
  return usage->exit_status;
}

}  // namespace weir::cli
