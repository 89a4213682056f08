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
#include "dataset/objects.h"
#include "infer/choices.h"
#include "record/provenance.h"
#include "serve/loaded_model.h"
#include "serve/logger.h"
#include "serve/server.h"

namespace weir::cli {
namespace {

struct Wanted {
  serve::ServerOptions server;
  std::string address = "127.0.0.1", http_address, grpc_address, metrics_address;
  std::string control = "none", compat = "none", strict = "true";
  std::string allow_http = "true", allow_grpc = "true", allow_metrics = "true";
  int64_t max_request_mb = 64, max_bytes_in_flight_mb = 1024, max_client_shm_mb = 16384;
  int64_t least_body_kib = 16;
  double exit_timeout_s = 30, drain_delay_s = 0, request_timeout_s = 600, message_timeout_s = 30;
  std::string json;
};

void AddListenFlags(Flags& flags, Wanted& w) {
  serve::ServerOptions& s = w.server;
  flags.Integer("--http-port", s.http.port, 0, 65535, "HTTP port (0: a free one)");
  flags.Integer("--grpc-port", s.grpc.port, 0, 65535, "gRPC port (0: a free one)");
  flags.Integer("--metrics-port", s.metrics.port, 0, 65535, "of the metrics for Prometheus");
  flags.Text("--address", w.address, "address that all servers listen on (default: loopback)");
  flags.Text("--http-address", w.http_address, "address of the HTTP server alone");
  flags.Text("--grpc-address", w.grpc_address, "address of the gRPC server alone");
  flags.Text("--metrics-address", w.metrics_address, "of the metrics alone");
  flags.Choice("--allow-http", w.allow_http, {"true", "false"}, "serve HTTP");
  flags.Choice("--allow-grpc", w.allow_grpc, {"true", "false"}, "serve gRPC");
  flags.Choice("--allow-metrics", w.allow_metrics, {"true", "false"}, "serve metrics");
  flags.Integer("--http-threads", s.http_threads, 1, 256, "event loop threads of the HTTP server");
  flags.Integer("--grpc-threads", s.grpc_threads, 1, 256, "completion queue threads of the gRPC server");
  flags.Integer("--decode-threads", s.decode_threads, 0, 1024,
                "threads that prepare pictures; 0: one per CPU");
}

void AddLimitFlags(Flags& flags, Wanted& w) {
  flags.Integer64("--max-request-mb", w.max_request_mb, 1, 2047, "MiB of one request");
  flags.Integer64("--max-in-flight-mb", w.max_bytes_in_flight_mb, 1, 1 << 20,
                  "MiB of all requests of one protocol together, and of prepared pictures");
  flags.Integer(
      "--max-connections", w.server.max_connections, 1, 1'000'000,
      "Connections of each server, HTTP and gRPC (default 1024). Beyond it idle ones are closed and "
      "health probes answered.");
  flags.Integer("--max-connections-per-address", w.server.max_connections_per_address, 0, 1'000'000,
                "gRPC connections from one client address (default 0: three quarters of --max-connections).");
  flags.Number("--message-timeout-secs", w.message_timeout_s, 0.1, 86400,
               "Seconds in which an arriving gRPC request must make progress (default 30). It may take ten "
               "times as long in all.");
  flags.Number("--request-timeout-secs", w.request_timeout_s, 1, 86400,
               "Seconds for one HTTP request to arrive whole (default 600).");
  flags.Integer64("--min-body-rate", w.least_body_kib, 0, 1 << 20,
                  "Least KiB a second of an HTTP body, and of a response being read, after 20 s "
                  "(default 16; 0 allows any).");
  flags.Integer("--max-queue", w.server.max_queue, 1, 1'000'000,
                "calls that wait for a model whose configuration does not say");
  flags.Number("--exit-timeout-secs", w.exit_timeout_s, 0, 86400,
               "seconds for the work under way when the server is told to stop");
  flags.Number("--drain-delay-secs", w.drain_delay_s, 0, 3600,
               "seconds between not being ready and refusing work, for load balancers to notice");
}

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  serve::ServerOptions& s = w.server;
  Flags flags("serve", "Serves models over HTTP and gRPC, as the Open Inference Protocol v2 has it.",
              "weir serve --model-repository made");
  flags.Texts(
      "--model-repository,--model-store", s.repositories,
      "a folder of model folders, a model folder, an .onnx file, or s3://BUCKET/PREFIX (copied once, at the "
      "start); may be given again",
      true);
  flags.Choice("--model-control-mode", w.control, {"none", "explicit", "poll"},
               "none: serve everything there; explicit: load and unload by request");
  flags.Texts("--load-model", s.load, "with explicit: a model to begin with; * for all; may be given again",
              false);
  flags.Text("--engine", s.engine, "onnxruntime, openvino or emulated:...; instead of the models' own");
  flags.Integer("--threads", s.threads, 0, 4096, "CPU threads of each model, instead of its own; 0: its own");
  flags.Text("--cache-dir", s.cache_dir, "where engines keep compiled models");
  AddListenFlags(flags, w);
  AddLimitFlags(flags, w);
  flags.Repeated("--allow-origin", s.allow_origins,
                 "Origin whose web pages may call the server, such as https://example.com, or * for all. "
                 "Loopback origins always may. May be given again.");
  flags.Repeated("--allow-host", s.allow_hosts,
                 "Name by which clients may call the server, such as weir.example.com, or * for all. IP "
                 "addresses and loopback names are always allowed. May be given again.");
  flags.Switch("--allow-client-shm", s.allow_regions, "let clients register shared memory of this machine");
  flags.Integer64("--max-client-shm-mb", w.max_client_shm_mb, 1, 1 << 24,
                  "MiB of shared memory that clients may register together");
  flags.Choice("--strict-readiness", w.strict, {"true", "false"},
               "ready only when every model asked for is; false: as soon as loading is over");
  flags.Choice("--compat", w.compat, {"none", "triton"},
               "triton: its status codes, error texts, name and version, for clients that check them");
  flags.Text("--json", w.json,
             "write what is served and where to this file once it is; - for standard output");
  return flags.Parse(arguments);
}

Status Complete(Wanted& w) {
  serve::ServerOptions& s = w.server;
  if (w.control == "poll") {
    return Fail(ErrorCode::kUnsupported,
                "--model-control-mode poll is not supported: use explicit, and load by request what is new");
  }
  s.explicit_control = w.control == "explicit";
  for (std::string& repository : s.repositories)
    repository = TRY(dataset::ObjectReader({}).CopyOf(repository, std::stop_token()));
  if (!s.load.empty() && !s.explicit_control) {
    return Fail(ErrorCode::kInvalidArgument,
                "--load-model is for --model-control-mode explicit; none serves everything there");
  }
  const auto place = [&](serve::ListenAddress& listen, const std::string& own, const std::string& allowed) {
    listen.address = own.empty() ? w.address : own;
    if (allowed == "false") listen.port = -1;
  };
  place(s.http, w.http_address, w.allow_http);
  place(s.grpc, w.grpc_address, w.allow_grpc);
  place(s.metrics, w.metrics_address, w.allow_metrics);
  s.max_request_bytes = static_cast<size_t>(w.max_request_mb) << 20;
  s.max_bytes_in_flight = static_cast<size_t>(w.max_bytes_in_flight_mb) << 20;
  s.max_region_bytes = static_cast<uint64_t>(w.max_client_shm_mb) << 20;
  s.least_body_rate = static_cast<size_t>(w.least_body_kib) << 10;
  s.request_timeout = std::chrono::milliseconds(static_cast<int64_t>(w.request_timeout_s * 1e3));
  s.exit_timeout = std::chrono::milliseconds(static_cast<int64_t>(w.exit_timeout_s * 1e3));
  s.message_timeout = std::chrono::milliseconds(static_cast<int64_t>(w.message_timeout_s * 1e3));
  s.drain_delay = std::chrono::milliseconds(static_cast<int64_t>(w.drain_delay_s * 1e3));
  s.strict_readiness = w.strict == "true";
  s.compat = w.compat == "triton" ? oip::Compat::kTriton : oip::Compat::kNone;
  s.version = std::string(record::BuildDescription());
  return {};
}

// As a client on this machine would call it: where all addresses are listened to, loopback is one of them.
std::string Url(const std::string& scheme, const std::string& address, int port) {
  const bool any = address == "0.0.0.0" || address == "::";
  const bool six = address.find(':') != std::string::npos;
  const std::string host = any ? (six ? "[::1]" : "127.0.0.1") : six ? "[" + address + "]" : address;
  return fmt::format("{}://{}:{}", scheme, host, port);
}

// The address and the port that a server listens on.
std::string Listens(const std::string& address, int port) {
  const bool six = address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", six ? "[" : "", address, six ? "]" : "", port);
}

bool IsLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

std::string TensorsText(const std::vector<infer::TensorInfo>& tensors) {
  std::string text;
  for (const infer::TensorInfo& tensor : tensors) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", tensor.name, ToString(tensor.dtype),
                        infer::ToString(tensor.shape));
  }
  return text;
}

// A command that gets an answer: an inference where its input is short enough to be written down, otherwise
// what the server says of the model.
std::string CurlLine(const std::string& http, const oip::ModelMetadata& model) {
  constexpr int64_t kMostElements = 64;
  Json inputs = Json::array();
  for (const infer::TensorInfo& input : model.inputs) {
    infer::Shape shape = input.shape;
    std::ranges::replace_if(shape, [](int64_t dim) { return dim < 0; }, 1);
    const int64_t elements = infer::ElementCount(shape).value_or(kMostElements + 1);
    if (input.dtype == infer::DType::kBytes &&
        model.name.ends_with(infer::SuffixOf(infer::Payload::kImage))) {
      return fmt::format(
          "curl -s {}/v2/models/{}/infer -H 'Inference-Header-Content-Length: 0' "
          "-H 'Content-Type: application/octet-stream' --data-binary @PICTURE.jpg",
          http, model.name);
    }
    if (elements > kMostElements) return fmt::format("curl -s {}/v2/models/{}", http, model.name);
    Json zero = input.dtype == infer::DType::kBytes  ? Json("")
                : input.dtype == infer::DType::kBool ? Json(false)
                                                     : Json(0);
    inputs.push_back({{"name", input.name},
                      {"datatype", ToString(input.dtype)},
                      {"shape", shape},
                      {"data", Json(static_cast<size_t>(elements), zero)}});
  }
  return fmt::format("curl -s {}/v2/models/{}/infer -H 'Content-Type: application/json' -d '{}'", http,
                     model.name, DumpJson({{"inputs", inputs}}));
}

struct Served {
  std::vector<oip::IndexEntry> index;
  std::vector<oip::ModelMetadata> models;  // of the entries that are ready, by name
  std::string http, grpc, metrics;         // URLs; empty: that server is disabled
  struct Listener {
    std::string url, listens;
    bool loopback = true;
  };
  std::vector<Listener> listeners;
};

Served Look(const Wanted& w, serve::Server& server) {
  Served served{.index = server.Index()};
  const serve::Server::Ports ports = server.ports();
  if (ports.http >= 0) served.http = Url("http", w.server.http.address, ports.http);
  if (ports.grpc >= 0) served.grpc = Url("grpc", w.server.grpc.address, ports.grpc);
  if (ports.metrics >= 0) served.metrics = Url("http", w.server.metrics.address, ports.metrics) + "/metrics";
  const auto add = [&](const std::string& url, const std::string& address, int port) {
    if (port >= 0) served.listeners.push_back({url, Listens(address, port), IsLoopback(address)});
  };
  add(served.http, w.server.http.address, ports.http);
  add(served.grpc, w.server.grpc.address, ports.grpc);
  add(served.metrics, w.server.metrics.address, ports.metrics);
  for (const oip::IndexEntry& entry : served.index) {
    const bool known = std::ranges::any_of(
        served.models, [&](const oip::ModelMetadata& model) { return model.name == entry.name; });
    if (entry.state != "READY" || known) continue;
    if (auto metadata = server.Metadata(entry.name)) served.models.push_back(*std::move(metadata));
  }
  return served;
}

std::string Text(const Console& console, const Served& served, const Status& ready) {
  std::string text = console.Bold("served\n");
  for (const oip::ModelMetadata& model : served.models) {
    text += fmt::format("  {:<24} version {:<6} {}: {} -> {}\n", EscapeBytes(model.name),
                        fmt::format("{}", fmt::join(model.versions, ", ")), model.platform,
                        TensorsText(model.inputs), TensorsText(model.outputs));
  }
  for (const oip::IndexEntry& entry : served.index) {
    if (entry.state == "READY" || entry.reason.empty()) continue;
    const std::string version = entry.version.empty() ? "" : fmt::format("version {:<6} ", entry.version);
    text += fmt::format("  {:<24} {}not served: {}\n", EscapeBytes(entry.name), version,
                        EscapeBytes(entry.reason));
  }
  text += console.Bold("at\n");
  for (const Served::Listener& listener : served.listeners)
    text += fmt::format("  {:<40} listens on {}\n", listener.url, listener.listens);
  if (!served.models.empty() && !served.http.empty()) {
    const auto shortest = std::ranges::min_element(served.models, {}, [&](const oip::ModelMetadata& model) {
      return CurlLine(served.http, model).find("/infer") == std::string::npos;
    });
    text += console.Bold("try\n") + "  " + CurlLine(served.http, *shortest) + "\n";
  }
  return text + (ready ? "ready\n" : "not ready: " + EscapeBytes(ready.error().message) + "\n");
}

// Returns a warning if other machines may reach the server; else nothing.
std::string ExposureWarning(const Served& served) {
  std::vector<std::string> open;
  for (const Served::Listener& listener : served.listeners) {
    if (!listener.loopback) open.push_back(listener.listens);
  }
  if (open.empty()) return "";
  return fmt::format(
      "the server listens on {}, which is not loopback, and has neither TLS nor a token: whoever reaches it "
      "may "
      "use it. Put it behind a proxy that has them, or leave --address at 127.0.0.1.",
      fmt::join(open, ", "));
}

std::unexpected<Error> NoModel(const Wanted& w, const Served& served) {
  if (!served.index.empty())
    return Fail(ErrorCode::kNotFound, "there is no model that can be served; see the reasons above");
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}: no model is in it; a model lies there as NAME/VERSION/model.onnx",
                          EscapeBytes(fmt::format("{}", fmt::join(w.server.repositories, ", ")))));
}

Json TensorsJson(const std::vector<infer::TensorInfo>& tensors) {
  Json list = Json::array();
  for (const auto& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"datatype", ToString(tensor.dtype)}, {"shape", tensor.shape}});
  }
  return list;
}

Json ToJson(const Wanted& w, const Served& served, const serve::Server& server, const Status& ready) {
  Json json{{"ready", ready.has_value()}};
  if (!ready) json["not_ready"] = ready.error().message;
  json["pid"] = ::getpid();
  const serve::Server::Ports ports = server.ports();
  const auto put = [&](const char* name, int port, const std::string& url, const std::string& address) {
    if (port >= 0) json[name] = {{"port", port}, {"url", url}, {"address", address}};
  };
  put("http", ports.http, served.http, w.server.http.address);
  put("grpc", ports.grpc, served.grpc, w.server.grpc.address);
  put("metrics", ports.metrics, served.metrics, w.server.metrics.address);
  json["models"] = Json::array();
  for (const oip::ModelMetadata& model : served.models) {
    json["models"].push_back({{"name", EscapeBytes(model.name)},
                              {"versions", model.versions},
                              {"platform", model.platform},
                              {"inputs", TensorsJson(model.inputs)},
                              {"outputs", TensorsJson(model.outputs)}});
  }
  json["index"] = Json::array();
  for (const oip::IndexEntry& entry : served.index) {
    json["index"].push_back({{"name", EscapeBytes(entry.name)},
                             {"version", entry.version},
                             {"state", entry.state},
                             {"reason", EscapeBytes(entry.reason)}});
  }
  json["version"] = record::BuildDescription();
  json["command"] = record::CommandLine(CommandLine());
  return json;
}

// A descriptor of a standard stream that is closed would become that of a connection, which then got the log.
void KeepStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

// Runs `work`, which may block for ever and owns what it uses, on a thread of its own. Returns nullopt where
// it has not ended when `stop` was asked for: the thread is left behind.
std::optional<Status> RunUntil(const std::stop_token& stop, std::function<Status()> work) {
  constexpr Duration kGrace = 1s;
  struct Ended {
    Mutex mutex;
    CondVar changed;
    std::optional<Status> status GUARDED_BY(mutex);
  };
  const auto ended = std::make_shared<Ended>();
  std::jthread thread = StartThread("announce", [ended, work = std::move(work)](const std::stop_token&) {
    const Status status = work();
    MutexLock lock(ended->mutex);
    ended->status = status;
    ended->changed.NotifyAll();
  });
  const std::stop_callback on_stop(stop, [&ended] {
    MutexLock lock(ended->mutex);
    ended->changed.NotifyAll();
  });
  const SteadyClock clock;
  MutexLock lock(ended->mutex);
  while (!ended->status && !stop.stop_requested()) ended->changed.Wait(ended->mutex);
  const Instant until = clock.Now() + kGrace;
  while (!ended->status && ended->changed.WaitUntil(ended->mutex, until)) {
  }
  if (!ended->status) thread.detach();
  return ended->status;
}

// Prints what is served and writes --json. No fault of who reads it ends the server. False: nobody has read
// it when `stop` was asked for.
bool Announce(const Console& console, const std::string& text, const Json& json, serve::Logger& logger,
              const std::stop_token& stop) {
  const auto written = RunUntil(stop, [console, text, json] {
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

void WaitFor(const std::stop_token& stop) {
  Mutex mutex;
  CondVar changed;
  const std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  while (!stop.stop_requested()) changed.Wait(mutex);
}

// Gives the exit status. Sets `stuck` where a thread is left that cannot be waited for.
Result<int> ServeModels(Wanted& w, serve::Logger& logger, const std::stop_token& stop, bool& stuck) {
  TRY_STATUS(Complete(w));
  const Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  auto server = TRY(serve::Server::Start(w.server, clock, logger));
  server->WaitUntilLoaded(stop);
  if (!stop.stop_requested()) {
    const Status ready = server->Ready();
    const Served served = Look(w, *server);
    if (served.models.empty() && !w.server.explicit_control) return NoModel(w, served);
    if (const std::string warning = ExposureWarning(served); !warning.empty())
      logger.Write(serve::LogLevel::kWarning, warning);
    stuck = !Announce(console, Text(console, served, ready), ToJson(w, served, *server, ready), logger, stop);
  }
  WaitFor(stop);
  if (server->Stop()) return kDone;
  logger.Write(
      serve::LogLevel::kError,
      fmt::format("some work was still under way after {} s: raise --exit-timeout-secs", w.exit_timeout_s));
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
