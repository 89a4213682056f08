#include "serve/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <functional>
#include <iterator>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "gpu/driver.h"
#include "http/error_body.h"
#include "http/http_server.h"
#include "http/work_pool.h"
#include "monitor/gpu.h"
#include "monitor/proc.h"
#include "oip/grpc/server.h"
#include "oip/http/server.h"
#include "serve/api.h"
#include "serve/catalogue.h"
#include "serve/loader.h"
#include "serve/refusal_log.h"

namespace weir::serve {
namespace {

constexpr Duration kPatience = 50ms;  // between two looks at whether to stop
constexpr Duration kWatchEvery = 1s;
constexpr Duration kLetGo = 5s;              // for letting go models that do nothing, at least
constexpr int kMostMetricsConnections = 64;  // of scrapers
constexpr int kJsonThreads = 2;

class ServerInstance final : public Server {
 public:
  ServerInstance(ServerOptions options, const Clock& clock, Logger& logger)
      : options_(std::move(options)),
        clock_(clock),
        logger_(logger),
        log_(logger.function()),
        failures_(clock, log_),
        refusals_(clock, log_) {}
  ~ServerInstance() override {
    http_.reset();
    json_pool_.Stop();  // what it runs calls the parts that go next
  }

  Status Open();

  Ports ports() const override {
    return {.http = http_ ? http_->port() : -1,
            .grpc = grpc_ ? grpc_->port() : -1,
            .metrics = scraped_ ? scraped_->port() : -1};
  }
  void WaitUntilLoaded(const std::stop_token& stop) override {
    while (!stop.stop_requested() && !repository_->WaitUntilLoaded(clock_.Now() + kPatience)) {
    }
  }
  Status Ready() override { return api_->Ready(); }
  std::vector<oip::IndexEntry> Index() override { return api_->Index(false); }
  Result<oip::ModelMetadata> Metadata(const std::string& model) override { return api_->Metadata(model, ""); }
  bool Stop() override;
  std::optional<std::string> WaitUntilLost(const std::stop_token& stop) override;

 private:
  Status StartServers();
  void Every(Duration period, const std::stop_token& stop, const std::function<void()>& work);
  int MostConnections(const char* protocol, int files_each) const;
  Result<std::unique_ptr<http::HttpServer>> OpenHttp(http::HttpServer::Options options,
                                                     const ListenAddress& at,
                                                     http::HttpServer::Handler handler);
  void OnHttpEvent(const http::HttpServer::Options& server, http::HttpEvent event);
  void Refused(oip::GrpcRefusal refusal, const std::string& who);
  void Refused(RequestRefusal refusal, const std::string& what);
  void Scrape(const http::HttpRequest& request, http::HttpResponder responder);

  const ServerOptions options_;
  const Clock& clock_;
  const Logger& logger_;
  const Log log_;
  FailureLog failures_;
  std::unique_ptr<monitor::GpuReader> gpus_;  // null where there are none
  Mutex lost_mutex_;
  CondVar lost_changed_;
  std::optional<std::string> lost_ GUARDED_BY(lost_mutex_);
  RefusalLog refusals_;
  Metrics metrics_;
  http::WorkPool json_pool_{{.name = "json", .threads = kJsonThreads}};
  std::optional<SharedMemoryRegistry> regions_;
  std::unique_ptr<InferencePath> path_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<ServerApi> api_;
  std::unique_ptr<http::HttpServer> scraped_, http_;
  std::unique_ptr<oip::OipGrpcServer> grpc_;
  int max_connections_ = 0;
  std::jthread watch_, poll_;
};

// Returns how many connections a server may have if each takes so many files. The files that this process may
// open are for both servers and for the engines.
int ServerInstance::MostConnections(const char* protocol, int files_each) const {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return options_.max_connections;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const rlim_t share = files.rlim_max / 4 / static_cast<rlim_t>(files_each);
  const auto room = std::max(1, static_cast<int>(std::min<rlim_t>(share, INT_MAX)));
  if (room < options_.max_connections) {
    log_(LogLevel::kWarning,
         fmt::format("the {} server takes {} connections, not {}: this process may open {} "
                     "files: raise the limit (ulimit -Hn)",
                     protocol, room, options_.max_connections, files.rlim_max));
  }
  return std::min(room, options_.max_connections);
}

Status ServerInstance::Open() {
  max_connections_ = MostConnections("HTTP", 1);
  if (auto gpus = monitor::GpuReader::Open()) gpus_ = *std::move(gpus);
  if (options_.allow_regions) {
    auto driver = gpu::Driver::Open();
    const bool has_gpu = driver && !(*driver)->devices().empty();
    regions_.emplace(options_.max_region_bytes, has_gpu ? *std::move(driver) : nullptr);
  }
  path_ = std::make_unique<InferencePath>(
      InferencePath::Options{.decode_threads = options_.decode_threads,
                             .max_prepared_bytes = options_.max_bytes_in_flight,
                             .max_region_bytes = options_.max_request_bytes,
                             .compat = options_.compat},
      regions_ ? &*regions_ : nullptr, clock_, failures_);
  std::vector<std::string> places = options_.allow_links;
  std::ranges::copy_if(options_.repositories, std::back_inserter(places), [](const std::string& place) {
    std::error_code ignored;
    return std::filesystem::is_directory(place, ignored);
  });
  auto loader = MakeFileLoader({.engine = options_.engine,
                                .device = options_.device,
                                .threads = options_.threads,
                                .cache_dir = options_.cache_dir,
                                .max_queue = options_.max_queue,
                                .link_roots = TRY(model::LinkRoots(places))},
                               clock_, metrics_, log_);
  repository_ = TRY(Repository::Create(TRY(Catalogue::Open(options_.repositories)),
                                       {.control = options_.control, .load = options_.load},
                                       std::move(loader), clock_, log_));
  api_ = std::make_unique<ServerApi>(
      ServerApi::Options{.version = options_.version,
                         .strict_readiness = options_.strict_readiness,
                         .explicit_control = options_.control == Repository::Control::kExplicit,
                         .allow_regions = options_.allow_regions,
                         .compat = options_.compat},
      ServerApi::Parts{.repository = *repository_,
                       .path = *path_,
                       .regions = regions_ ? &*regions_ : nullptr,
                       .metrics = metrics_,
                       .failures = failures_},
      clock_);
  watch_ = StartThread("watch", [this](const std::stop_token& stop) {
    Every(kWatchEvery, stop, [this] {
      repository_->WatchEngines();
      if (auto lost = repository_->Lost()) {
        MutexLock lock(lost_mutex_);
        lost_ = std::move(lost);
        lost_changed_.NotifyAll();
      }
      failures_.TellCounts();
    });
  });
  // A thread of its own: the files may lie on a slow disk.
  if (options_.control == Repository::Control::kPoll) {
    poll_ = StartThread("poll", [this](const std::stop_token& stop) {
      Every(options_.poll_period, stop, [this] { repository_->Poll(); });
    });
  }
  return StartServers();
}

// Calls `work` at once and then after each `period`, until it is to stop.
void ServerInstance::Every(Duration period, const std::stop_token& stop, const std::function<void()>& work) {
  Mutex mutex;
  CondVar changed;
  const std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    changed.NotifyAll();
  });
  while (!stop.stop_requested()) {
    work();
    const Instant next = clock_.Now() + period;
    MutexLock lock(mutex);
    while (!stop.stop_requested() && changed.WaitUntil(mutex, next)) {
    }
  }
}

void ServerInstance::Refused(RequestRefusal refusal, const std::string& what) {
  metrics_.Refused(refusal);
  refusals_.Tell(ToString(refusal), what);
}

void ServerInstance::OnHttpEvent(const http::HttpServer::Options& server, http::HttpEvent event) {
  switch (event) {
    case http::HttpEvent::kTooManyConnections:
      return Refused(RequestRefusal::kTooManyConnections,
                     fmt::format("{}: a connection was refused: {} are open and none is idle; raise "
                                 "--max-connections, or find out who holds them",
                                 server.name, server.max_connections));
    case http::HttpEvent::kTooManyBytes:
      return Refused(RequestRefusal::kTooManyBytes,
                     fmt::format("{}: a request was refused: the requests under way hold {} MiB; raise "
                                 "--max-in-flight-mb",
                                 server.name, server.max_bytes_in_flight >> 20));
    case http::HttpEvent::kTooSlow:
      return Refused(RequestRefusal::kTooSlow,
                     fmt::format("{}: a client was too slow and was cut off; --min-body-rate and "
                                 "--request-timeout-secs say how slow it may be",
                                 server.name));
    case http::HttpEvent::kStopping:
      return metrics_.Refused(RequestRefusal::kStopping);
    case http::HttpEvent::kIdleClosed:
      return metrics_.IdleConnectionClosed();
    case http::HttpEvent::kMalformed:
      return metrics_.Refused(RequestRefusal::kMalformed);
  }
}

Result<std::unique_ptr<http::HttpServer>> ServerInstance::OpenHttp(http::HttpServer::Options options,
                                                                   const ListenAddress& at,
                                                                   http::HttpServer::Handler handler) {
  options.address = at.address;
  options.port = at.port;
  options.allow_origins = options_.allow_origins;
  options.allow_hosts = options_.allow_hosts;
  options.has_allow_flags = true;
  options.timeouts.request = options_.request_timeout;
  options.timeouts.least_rate = options_.least_body_rate;
  options.align_after = std::string(oip::kHeaderLengthName);
  options.on_event = [this, server = options](http::HttpEvent event) { OnHttpEvent(server, event); };
  options.on_refused = [this, name = options.name](const std::string& reason) {
    Refused(RequestRefusal::kCrossSite, fmt::format("{}: a request was refused: {}", name, reason));
  };
  return http::HttpServer::Create(std::move(options), std::move(handler), clock_);
}

Status ServerInstance::StartServers() {
  if (options_.http.port >= 0) {
    const oip::OipHttpOptions http_options{
        .compat = options_.compat,
        .allow_regions = options_.allow_regions,
        .json_pool = &json_pool_,
        .on_pool_full = [this] {
          Refused(
              RequestRefusal::kJsonQueueFull,
              "HTTP: a request was refused: too many large JSON bodies wait to be read; send binary tensors");
        }};
    http_ = TRY(OpenHttp({.threads = options_.http_threads,
                          .max_body = options_.max_request_bytes,
                          .max_connections = max_connections_,
                          .max_bytes_in_flight = options_.max_bytes_in_flight,
                          .is_probe = oip::IsHealthProbe},
                         options_.http, oip::MakeOipHttpHandler(*api_, clock_, http_options)));
  }
  if (options_.grpc.port >= 0) {
    grpc_ = TRY(oip::OipGrpcServer::Create(
        {.address = options_.grpc.address,
         .port = options_.grpc.port,
         .threads = options_.grpc_threads,
         .max_message = options_.max_request_bytes,
         .max_bytes_in_flight = options_.max_bytes_in_flight,
         .max_connections = MostConnections("gRPC", 2),
         .max_connections_per_address = options_.max_connections_per_address,
         .message_timeout = options_.message_timeout,
         .refused = [this](oip::GrpcRefusal refusal, const std::string& who) { Refused(refusal, who); },
         .compat = options_.compat,
         .allow_regions = options_.allow_regions},
        *api_, clock_));
  }
  if (options_.metrics.port >= 0) {
    scraped_ = TRY(OpenHttp({.name = "metrics",
                             .flag_prefix = "--metrics",
                             .max_body = 0,
                             .max_connections = std::min(max_connections_, kMostMetricsConnections),
                             .is_probe = [](const http::HttpRequest&) { return true; }},
                            options_.metrics,
                            [this](const http::HttpRequest& request, http::HttpResponder responder) {
                              Scrape(request, std::move(responder));
                            }));
  }
  return {};
}

void ServerInstance::Refused(oip::GrpcRefusal refusal, const std::string& who) {
  metrics_.Refused(refusal);
  refusals_.Tell(fmt::format("grpc_{}", ToString(refusal)),
                 fmt::format("gRPC, {}: {}", who, oip::Explanation(refusal)));
}

void ServerInstance::Scrape(const http::HttpRequest& request, http::HttpResponder responder) {
  http::HttpResponse reply{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  if (request.path != "/metrics" && request.path != "/metrics/") {
    reply = {.status = 404,
             .body = {Bytes::Copy(http::ErrorBody({ErrorCode::kNotFound, "metrics are at /metrics"}))}};
  } else if (request.method != "GET" && request.method != "HEAD") {
    reply = {
        .status = 405,
        .headers = {{"Allow", "GET, HEAD"}},
        .body = {Bytes::Copy(http::ErrorBody({ErrorCode::kInvalidArgument, "metrics are read with GET"}))}};
  } else {
    api_->Gauge();
    const auto stat = monitor::ReadSmall("/proc/self/stat");
    const auto process = stat ? monitor::ParseProcessStat(*stat) : std::nullopt;
    if (process) metrics_.SetProcess(ProcessCpuTime(), process->resident_bytes);
    metrics_.SetLogDropped(logger_.dropped());
    if (gpus_) metrics_.SetGpus(gpus_->devices(), gpus_->Read());
    reply.body = {Bytes::Copy(metrics_.Text())};
  }
  responder.Send(std::move(reply));
}

std::optional<std::string> ServerInstance::WaitUntilLost(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] {
    MutexLock lock(lost_mutex_);
    lost_changed_.NotifyAll();
  });
  MutexLock lock(lost_mutex_);
  while (!stop.stop_requested() && !lost_) lost_changed_.Wait(lost_mutex_);
  return lost_;
}

bool ServerInstance::Stop() {
  api_->SetLife(Life::kLeaving);
  SleepUntil(clock_.Now() + options_.drain_delay);
  api_->SetLife(Life::kStopping);
  if (http_) http_->StopAccepting();
  if (grpc_) grpc_->StopAccepting();
  const Instant until = clock_.Now() + options_.exit_timeout;
  const bool http_idle = !http_ || http_->WaitUntilIdle(until);
  const bool grpc_idle = !grpc_ || grpc_->WaitUntilIdle(until);
  if (scraped_) scraped_->StopAccepting();
  if (!http_idle || !grpc_idle) return false;
  watch_ = {};
  poll_ = {};
  // An engine may hang in a call that nobody waits for any more.
  return repository_->Stop(std::max(until, clock_.Now() + kLetGo));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, const Clock& clock, Logger& logger) {
  auto server = std::make_unique<ServerInstance>(std::move(options), clock, logger);
  TRY_STATUS(server->Open());
  return server;
}

}  // namespace weir::serve
