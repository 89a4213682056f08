#include "cli/server_place.h"

#include "launch/process/command.h"
#include "oip/http/plain_http.h"

namespace weir::cli {

void AddServerPlace(Flags& flags, monitor::ServerPlace& place) {
  flags.Integers("--server-pid", place.pids, "processes to watch as the server's, with what they start");
  flags.Optional("--server-container", place.container,
                 "the same for a container of podman or docker on this machine, by name or id");
  flags.Optional("--metrics-url", place.metrics_url,
                 "http://HOST:PORT/metrics: what the server tells of itself, wherever it runs");
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
