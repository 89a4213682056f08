// Watching the server of a run or a load: by its processes, its container, or what it tells of itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/flags.h"
#include "monitor/resources.h"

namespace weir::cli {

struct ServerPlace {
  std::vector<int> pids;    // on this machine, with all they start
  std::string container;    // of podman or docker on this machine
  std::string metrics_url;  // a page in Prometheus' text; here or elsewhere

  bool any() const { return !pids.empty() || !container.empty() || !metrics_url.empty(); }
};
// --server-pid, --server-container, --metrics-url.
void AddServerPlace(Flags& flags, ServerPlace& place);
// The container's first process among the pids. kNotFound names a process or container that is not there.
Status FindServer(ServerPlace& place, const Clock& clock);

// From Start to Stop. One thread at a time.
class ServerWatch {
 public:
  // `place` as FindServer left it. Of a page alone there is nothing but what it tells.
  static Result<ServerWatch> Start(const ServerPlace& place, const Clock& clock);
  monitor::Resources Stop();

 private:
  ServerWatch(std::unique_ptr<monitor::ResourceMonitor> monitor, bool has_processes)
      : monitor_(std::move(monitor)), has_processes_(has_processes) {}

  std::unique_ptr<monitor::ResourceMonitor> monitor_;
  bool has_processes_;
};

}  // namespace weir::cli
