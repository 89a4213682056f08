#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/json.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "record/provenance.h"
#include "serve/announcement.h"
#include "serve/complete_options.h"
#include "serve/logger.h"
#include "serve/server.h"

namespace weir::cli {
namespace {

struct Wanted {
  serve::ServerOptions server;
  serve::ListenRequest listen;
  std::string json;
};

using TrueOrFalse = std::vector<std::pair<std::string, bool>>;
const TrueOrFalse kTrueOrFalse{{"true", true}, {"false", false}};

void AddListenFlags(Flags& flags, Wanted& w) {
  serve::ServerOptions& s = w.server;
  flags.Integer("--http-port", s.http.port, 0, 65535, "HTTP port (0: a free one)");
  flags.Integer("--grpc-port", s.grpc.port, 0, 65535, "gRPC port (0: a free one)");
  flags.Integer("--metrics-port", s.metrics.port, 0, 65535,
                "port of the metrics for Prometheus (0: a free one)");
  flags.Text("--address", w.listen.address, "address that all servers listen on (default: loopback)");
  flags.Text("--http-address", w.listen.http_address, "address of the HTTP server alone");
  flags.Text("--grpc-address", w.listen.grpc_address, "address of the gRPC server alone");
  flags.Text("--metrics-address", w.listen.metrics_address, "address of the metrics server alone");
  flags.OneOf("--allow-http", w.listen.http, kTrueOrFalse, "serve HTTP");
  flags.OneOf("--allow-grpc", w.listen.grpc, kTrueOrFalse, "serve gRPC");
  flags.OneOf("--allow-metrics", w.listen.metrics, kTrueOrFalse, "serve metrics");
  flags.Integer("--http-threads", s.http_threads, 1, 256, "event loop threads of the HTTP server");
  flags.Integer("--grpc-threads", s.grpc_threads, 1, 256, "completion queue threads of the gRPC server");
  flags.Integer("--decode-threads", s.decode_threads, 0, 1024,
                "threads that prepare pictures (0: one for each CPU)");
}

void AddLimitFlags(Flags& flags, Wanted& w) {
  flags.Integer("--max-request-mb", w.server.max_request_bytes, 1, 2047, "largest request in MiB", 1 << 20);
  flags.Integer("--max-in-flight-mb", w.server.max_bytes_in_flight, 1, 1 << 20,
                "most MiB in flight, for each protocol, and for prepared pictures", 1 << 20);
  flags.Integer("--max-connections", w.server.max_connections, 1, 1'000'000,
                "Connections of each server, HTTP and gRPC. Beyond it idle ones are closed and "
                "health probes answered.");
  flags.Integer("--max-connections-per-address", w.server.max_connections_per_address, 0, 1'000'000,
                "gRPC connections from one client address (default 0: three quarters of --max-connections).");
  flags.Seconds("--message-timeout-secs", w.server.message_timeout, 0.1, 86400,
                "Seconds in which an arriving gRPC request must make progress. It may take ten "
                "times as long in all.");
  flags.Seconds("--request-timeout-secs", w.server.request_timeout, 1, 86400,
                "Seconds for one HTTP request to arrive whole.");
  flags.Integer("--min-body-rate", w.server.least_body_rate, 0, 1 << 20,
                "Least KiB a second of an HTTP body, and of a response being read, after 20 s "
                "(0 allows any).",
                1 << 10);
  flags.Integer("--max-queue", w.server.max_queue, 1, 1'000'000,
                "most calls that wait for a model, unless its configuration says");
  flags.Seconds("--exit-timeout-secs", w.server.exit_timeout, 0, 86400,
                "seconds to finish the work in flight when the server stops");
  flags.Seconds("--drain-delay-secs", w.server.drain_delay, 0, 3600,
                "seconds for load balancers to see that the server is not ready, before it refuses work");
}

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  serve::ServerOptions& s = w.server;
  Flags flags("serve", "Serves models over HTTP and gRPC by the Open Inference Protocol v2.",
              "weir serve --model-repository made");
  flags.Texts("--model-repository,--model-store", s.repositories,
              "folder of model folders, model folder, .onnx file, or s3://BUCKET/PREFIX (copied once at the "
              "start); may be given again",
              true);
  using Control = serve::Repository::Control;
  flags.OneOf("--model-control-mode", s.control,
              {{"none", Control::kNone}, {"explicit", Control::kExplicit}, {"poll", Control::kPoll}},
              "none: serve all models; poll: follow the files, load and unload models as they change; "
              "explicit: load and unload on request");
  flags.Seconds("--repository-poll-secs", w.server.poll_period, 0.05, 86400,
                "seconds between two looks at the files, with poll; a change takes effect at the "
                "second look that finds it");
  flags.Texts("--load-model", s.load,
              "model to load at the start, with explicit; * for all; may be given again", false);
  flags.Text("--engine", s.engine,
             "engine of all models, instead of their own: onnxruntime, openvino or emulated:...");
  flags.Text("--device", s.device,
             "device of all models, instead of their own: cpu, cuda:N, cuda:UUID, cuda:all, gpu:N or npu");
  flags.Integer("--threads", s.threads, 0, 4096, "CPU threads of each model (0: as its configuration says)");
  flags.Text("--cache-dir", s.cache_dir, "folder for compiled models");
  flags.Repeated(
      "--allow-link", s.allow_links,
      "Folder that links in a model's folder may lead below, such as ~/.cache/huggingface. Links into "
      "the repository are always allowed. May be given again.");
  AddListenFlags(flags, w);
  AddLimitFlags(flags, w);
  flags.Repeated("--allow-origin", s.allow_origins,
                 "Origin whose web pages may call the server, such as https://example.com, or * for all. "
                 "Loopback origins always may. May be given again.");
  flags.Repeated("--allow-host", s.allow_hosts,
                 "Name by which clients may call the server, such as weir.example.com, or * for all. IP "
                 "addresses and loopback names are always allowed. May be given again.");
  flags.Switch("--allow-client-shm", s.allow_regions,
               "allow clients to register shared memory of this machine");
  flags.Integer("--max-client-shm-mb", s.max_region_bytes, 1, 1 << 24,
                "most MiB of shared memory that clients may register in all", 1 << 20);
  flags.OneOf("--strict-readiness", s.strict_readiness, kTrueOrFalse,
              "true: ready when every requested model is; false: ready when loading is over");
  flags.OneOf("--compat", s.compat, {{"none", oip::Compat::kNone}, {"triton", oip::Compat::kTriton}},
              "triton: Triton's status codes, error texts, name and version, for clients that check them");
  flags.Text("--json", w.json,
             "write the served models and addresses as JSON to this file, once ready; - for standard output");
  return flags.Parse(arguments);
}

// A descriptor of a standard stream that is closed would become that of a connection, which then got the log.
void KeepStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

// Prints what is served and writes --json. No fault of who reads it ends the server. False: nobody has read
// it when `stop` was asked for.
bool Announce(const Console& console, const std::string& text, const Json& json, serve::Logger& logger,
              const std::stop_token& stop) {
  const auto written = RunUntil(stop, "announce", [console, text, json] {
    const Status printed = console.WriteText(text);
    const Status saved = console.Json(json);
    return saved ? printed : saved;
  });
  if (!written) return false;
  if (*written) return true;
  logger.Write(serve::LogLevel::kError, "what is served could not be told: " + written->error().message);
  __fpurge(stdout);  // otherwise the end of the program tries again and fails for it
  std::clearerr(stdout);
  return true;
}

// Gives the exit status. Sets `stuck` where a thread is left that cannot be waited for.
Result<int> ServeModels(Wanted& w, serve::Logger& logger, const std::stop_token& stop, bool& stuck) {
  TRY_STATUS(serve::CompleteOptions(w.listen, w.server));
  w.server.version = std::string(record::BuildDescription());
  const Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  auto server = TRY(serve::Server::Start(w.server, clock, logger));
  server->WaitUntilLoaded(stop);
  if (!stop.stop_requested()) {
    results::ServeResult result = serve::Describe(w.server, *server);
    result.command = record::CommandLine(CommandLine());
    // A model may still come where models are loaded by request or by polling.
    if (w.server.control == serve::Repository::Control::kNone)
      TRY_STATUS(serve::CheckServesAny(w.server, result));
    if (const std::string warning = serve::ExposureWarning(result); !warning.empty())
      logger.Write(serve::LogLevel::kWarning, warning);
    stuck =
        !Announce(console, serve::AnnouncementText(console.style(), result), result.ToJson(), logger, stop);
  }
  const auto lost = server->WaitUntilLost(stop);
  if (lost)
    logger.Write(serve::LogLevel::kError,
                 fmt::format("{}: the server ends, so that it can be started again", *lost));
  if (server->Stop()) return lost ? kJobFailed : kDone;
  logger.Write(serve::LogLevel::kError,
               fmt::format("some work was still under way after {} s: raise --exit-timeout-secs",
                           std::chrono::duration<double>(w.server.exit_timeout).count()));
  stuck = true;
  static_cast<void>(server.release());  // an engine that does not end its work would be waited for
  return kJobFailed;
}

}  // namespace

int Serve(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  KeepStandardStreams();
  ::signal(SIGPIPE, SIG_IGN);
  const Interrupt interrupt;
  const SteadyClock clock;
  bool stuck = false;
  serve::Logger logger(serve::StandardErrorSink(), clock);
  const Result<int> served = ServeModels(wanted, logger, interrupt.token(), stuck);
  logger.Close();
  const int status = served ? *served : FailWithin(served.error());
  if (stuck) ::_exit(status);
  return status;
}

}  // namespace weir::cli
