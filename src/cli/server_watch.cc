#include "cli/server_watch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/json.h"
#include "launch/process/command.h"
#include "monitor/prometheus.h"
#include "oip/http/plain_http.h"

namespace weir::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{500};  // with the page

// The first process of a container, which the others come of.
Result<int> ContainerPid(const std::string& name, const Clock& clock) {
  std::string words;
  for (const char* tool : {"podman", "docker"}) {
    const auto said = launch::RunWell(
        {.arguments = {tool, "inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", name},
         .timeout = 10s},
        clock);
    const int pid = said ? std::atoi(said->c_str()) : 0;
    if (pid > 0) return pid;
    words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", tool,
                         said ? "it does not run" : said.error().message);
  }
  return Fail(ErrorCode::kNotFound, fmt::format("--server-container {}: {}", EscapeBytes(name), words));
}

// How long the emulated accelerators of a server have computed, the mean of their streams; nothing where its
// page does not tell.
std::optional<Duration> BusyOn(const Result<std::string>& page) {
  if (!page) return std::nullopt;
  const auto metrics = monitor::ParsePrometheus(*page);
  if (!metrics) return std::nullopt;
  double busy = 0, streams = 0;
  for (const monitor::Metric& metric : *metrics) {
    if (metric.name == "weir_accelerator_busy_seconds") busy += metric.value;
    if (metric.name == "weir_accelerator_streams") streams += metric.value;
  }
  if (streams <= 0) return std::nullopt;
  return FromSeconds(busy / streams);
}

}  // namespace

void AddServerPlace(Flags& flags, ServerPlace& place) {
  flags.Integers("--server-pid", place.pids, "processes to watch as the server's, with what they start");
  flags.Optional("--server-container", place.container,
                 "the same for a container of podman or docker on this machine, by name or id");
  flags.Optional("--metrics-url", place.metrics_url,
                 "http://HOST:PORT/metrics: what the server tells of itself, wherever it runs");
}

Status FindServer(ServerPlace& place, const Clock& clock) {
  if (!place.container.empty()) place.pids.push_back(TRY(ContainerPid(place.container, clock)));
  for (const int pid : place.pids) {
    std::error_code error;
    if (!std::filesystem::exists(fmt::format("/proc/{}", pid), error))
      return Fail(ErrorCode::kNotFound, fmt::format("--server-pid {}: there is no such process", pid));
  }
  if (place.metrics_url.empty()) return {};
  TRY_CONTEXT(oip::FetchText(place.metrics_url, kPatience, clock), "--metrics-url");
  return {};
}

Result<ServerWatch> ServerWatch::Start(const ServerPlace& place, const Clock& clock) {
  monitor::ResourceMonitor::Options options{.processes = place.pids};
  if (!place.metrics_url.empty()) {
    const auto fetch = [url = place.metrics_url, &clock] { return oip::FetchText(url, kPatience, clock); };
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
  return ServerWatch(TRY(monitor::ResourceMonitor::Start(clock, std::move(options))), !place.pids.empty());
}

monitor::Resources ServerWatch::Stop() {
  monitor::Resources all = monitor_->Stop();
  if (has_processes_) return all;
  monitor::Resources told;
  told.server_metrics = std::move(all.server_metrics);
  told.gpu_percent = all.gpu_percent;
  told.gpu_label = all.gpu_label;
  told.wall_s = all.wall_s;
  told.samples = all.samples;
  told.period_ms = all.period_ms;
  return told;
}

}  // namespace weir::cli
