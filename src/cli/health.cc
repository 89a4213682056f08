#include <fmt/format.h>

#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/process/ready.h"

namespace weir::cli {

int Health(const Arguments& arguments) {
  std::string url;
  double timeout_s = 2;
  Flags flags("health", "Asks a server whether it is ready: exit status 0 when it is, 1 when it is not.",
              "weir health http://127.0.0.1:8000");
  flags.Required("URL", url,
                 "http://HOST:PORT of any Open Inference Protocol server, or a whole URL with a path");
  flags.Number("--timeout", timeout_s, 0.001, 3600, "seconds to wait for the answer");
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
