// Watching the server of a run or a load: by its processes, its container, or its metrics page.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/resources.h"

namespace weir::monitor {

struct ServerPlace {
  std::vector<int> pids;    // on this machine, with the processes they start
  std::string container;    // of podman or docker on this machine
  std::string metrics_url;  // a page in Prometheus' text format; here or elsewhere

  bool any() const { return !pids.empty() || !container.empty() || !metrics_url.empty(); }
};

// The ways to reach a server. Thread-safe. Tests give fakes.
struct ServerAccess {
  // Gets a page's text; gives up soon (about half a second), since a watch waits for it.
  std::function<Result<std::string>(const std::string& url)> fetch;
  // Runs a command; returns its standard output, or an error where it does not end with exit status 0.
  std::function<Result<std::string>(const std::vector<std::string>& command)> run;
};

// Resolves the container to its first process, which joins place.pids, and checks that all of it is there.
// kNotFound names a process or a container that is not there; errors of fetching the page are `fetch`'s.
Status FindServer(ServerPlace& place, const ServerAccess& access);

// A watch on a server, from Start to Stop. One thread at a time.
class ServerWatch {
 public:
  // `place` as FindServer left it; `clock` and what `access` refers to must outlive the watch. Without
  // processes to watch, the result holds only figures of the page. An emulated accelerator's busy time is
  // read from the page every 200 ms.
  static Result<ServerWatch> Start(const ServerPlace& place, const ServerAccess& access, const Clock& clock);
  Resources Stop();

 private:
  ServerWatch(std::unique_ptr<ResourceMonitor> monitor, bool has_processes)
      : monitor_(std::move(monitor)), has_processes_(has_processes) {}

  std::unique_ptr<ResourceMonitor> monitor_;
  bool has_processes_;
};

}  // namespace weir::monitor
