#include "monitor/server_watch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/json.h"
#include "monitor/prometheus.h"

namespace weir::monitor {
namespace {

// Finds the first process of a container.
Result<int> ContainerPid(const std::string& name, const ServerAccess& access) {
  std::string words;
  for (const char* tool : {"podman", "docker"}) {
    const auto said =
        access.run({tool, "inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", name});
    const int pid = said ? std::atoi(said->c_str()) : 0;
    if (pid > 0) return pid;
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", tool,
                         said ? "it does not run" : said.error().message);
  }
  return Fail(ErrorCode::kNotFound, fmt::format("--server-container {}: {}", EscapeBytes(name), words));
}

// Returns how long the emulated accelerators of a server have computed, the mean of their streams; nullopt if
// its page does not have it.
std::optional<Duration> BusyOn(const Result<std::string>& page) {
  if (!page) return std::nullopt;
  const auto metrics = ParsePrometheus(*page);
  if (!metrics) return std::nullopt;
  double busy = 0, streams = 0;
  for (const Metric& metric : *metrics) {
    if (metric.name == "weir_accelerator_busy_seconds") busy += metric.value;
    if (metric.name == "weir_accelerator_streams") streams += metric.value;
  }
  if (streams <= 0) return std::nullopt;
  return FromSeconds(busy / streams);
}

}  // namespace

Status FindServer(ServerPlace& place, const ServerAccess& access) {
  if (!place.container.empty()) place.pids.push_back(TRY(ContainerPid(place.container, access)));
  for (const int pid : place.pids) {
    std::error_code error;
    if (!std::filesystem::exists(fmt::format("/proc/{}", pid), error))
      return Fail(ErrorCode::kNotFound, fmt::format("--server-pid {}: there is no such process", pid));
  }
  if (place.metrics_url.empty()) return {};
  TRY_CONTEXT(access.fetch(place.metrics_url), "--metrics-url");
  return {};
}

Result<ServerWatch> ServerWatch::Start(const ServerPlace& place, const ServerAccess& access,
                                       const Clock& clock) {
  ResourceMonitor::Options options{.processes = place.pids};
  if (!place.metrics_url.empty()) {
    const auto fetch = [url = place.metrics_url, get = access.fetch] { return get(url); };
    options.server_page = fetch;
    const auto page = std::make_shared<Result<std::string>>(fetch());
    if (const auto busy = BusyOn(*page)) {
      options.period = 200ms;  // each look asks for the page
      options.device_label = "emulated";
      options.device_busy = [last = *busy, page, fetch]() mutable {
        *page = fetch();
        last = BusyOn(*page).value_or(last);
        return last;
      };
      options.server_page = [page] { return *page; };  // of the same look
    }
  }
  return ServerWatch(TRY(ResourceMonitor::Start(clock, std::move(options))), !place.pids.empty());
}

Resources ServerWatch::Stop() {
  Resources all = monitor_->Stop();
  if (has_processes_) return all;
  Resources told;
  told.server_metrics = std::move(all.server_metrics);
  told.gpu_percent = all.gpu_percent;
  told.gpu_label = all.gpu_label;
  told.wall_s = all.wall_s;
  told.samples = all.samples;
  told.period_ms = all.period_ms;
  return told;
}

}  // namespace weir::monitor
