#include <fmt/format.h>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/process/ready.h"

namespace weir::cli {

int Health(const Arguments& arguments) {
  std::string url;
  double timeout_s = 2;
  Flags flags("health", "Asks a server whether it is ready. Exit status 0: ready; 1: not ready.",
              "weir health http://127.0.0.1:8000");
  flags.Required("URL", url, "http://HOST:PORT of an Open Inference Protocol server, or a URL with a path");
  flags.Number("--timeout", timeout_s, 0.001, 3600, "seconds to wait for the response");
  if (const auto status = flags.Parse(arguments)) return *status;
  const auto parsed = launch::ParseHttpUrl(url);
  if (!parsed) return FailWith(parsed.error());
  if (parsed->path == "/") url += url.ends_with('/') ? "v2/health/ready" : "/v2/health/ready";
  const Status ready = launch::AskHttp(url, FromSeconds(timeout_s));
  if (!ready) return FailWith(ready.error());
  fmt::print("ready\n");
  return kDone;
}

}  // namespace weir::cli
