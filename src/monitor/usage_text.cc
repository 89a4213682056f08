#include "monitor/usage_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/count.h"
#include "base/json.h"

namespace weir::monitor {
namespace {

std::string Line(const char* what, const std::optional<Range>& range, const char* unit, double scale) {
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

std::string GpuLines(const Resources& r) {
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

// Returns lines about waits. Kinds that did not occur have no line.
std::string WaitLines(const Resources& r) {
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

}  // namespace

std::string ResourceText(const TextStyle& style, const Resources& r) {
  std::string text = fmt::format("{} mean (min to max) over {} samples of {:.0f} ms\n", style.Bold("used"),
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

std::string UsageText(const TextStyle& style, const CommandUsage& usage) {
  std::string text = fmt::format("{} {:.3f} s; CPU {:.3f} s user, {:.3f} s system", style.Bold("wall time"),
                                 usage.wall_s, usage.user_s, usage.system_s);
  if (usage.max_resident_bytes) {
    text += fmt::format("; largest process {}", Size(static_cast<double>(*usage.max_resident_bytes)));
  }
  return text + "\n" + ResourceText(style, usage.resources);
}

}  // namespace weir::monitor
