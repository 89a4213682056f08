#include "cli/server_place.h"

#include "launch/process/command.h"
#include "oip/http/plain_http.h"

namespace weir::cli {

void AddServerPlace(Flags& flags, monitor::ServerPlace& place) {
  flags.Integers("--server-pid", place.pids, "process ids of the server, watched with their children");
  flags.Optional("--server-container", place.container,
                 "name or id of the server's container (podman or docker on this machine), to watch");
  flags.Optional("--metrics-url", place.metrics_url,
                 "http://HOST:PORT/metrics of the server, on any machine, to read");
}

monitor::ServerAccess MakeServerAccess(const Clock& clock) {
  static constexpr std::chrono::milliseconds kPatience{500};  // with a page
  return {.fetch = [&clock](const std::string& url) { return oip::FetchText(url, kPatience, clock); },
          .run =
              [&clock](const std::vector<std::string>& command) {
                return launch::RunWell({.arguments = command, .timeout = 10s}, clock);
              }};
}

}  // namespace weir::cli
