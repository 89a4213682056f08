#include "cli/load_target.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"
#include "infer/runner.h"
#include "load/inputs/shared_memory.h"
#include "model/model.h"
#include "oip/client.h"
#include "oip/http/plain_http.h"
#include "oip/infer_rules.h"
#include "oip/served_name.h"

namespace weir::cli {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

constexpr std::chrono::seconds kPatience{5};  // with a question beside the load

class RemoteTarget final : public LoadTarget {
 public:
  RemoteTarget(oip::ModelUrl url, http::ClientOptions options, const LoadFlags& flags, const Clock& clock)
      : url_(std::move(url)), options_(options), flags_(flags), clock_(clock) {}
  ~RemoteTarget() override;
  Status Open();

  infer::Service& service() override { return *client_; }
  bool is_driven() const override { return options_.threads == 0; }
  Duration Drive(Instant until, Duration awake) override { return client_->Drive(until, awake); }
  void GiveUp() override {
    client_.reset();
    client_ = oip::MakeClient(url_.server, options_, clock_).value();  // as it was made before
  }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return url_.version; }
  std::string Title() const override { return fmt::format("{} at {}", info_.name, url_.server); }
  std::string protocol() const override { return url_.server.substr(0, 4); }
  std::optional<infer::PhaseTotals> Statistics() override {
    auto totals = questions_->Statistics(info_.name, url_.version);
    return totals ? std::optional(*std::move(totals)) : std::nullopt;
  }
  Status Prepare(load::Requests& requests) override;

 private:
  Status CheckTellsDurations();
  Status CheckPriority() const;

  const oip::ModelUrl url_;
  const http::ClientOptions options_;
  const LoadFlags& flags_;
  const Clock& clock_;
  load::SharedRequests shared_;
  std::vector<std::string> regions_;            // registered with the server
  std::unique_ptr<infer::Endpoint> questions_;  // apart from the load
  std::unique_ptr<infer::Endpoint> client_;
  infer::ModelInfo info_;
};

Status RemoteTarget::Open() {
  // Idle threads of the gRPC library take part in the polling of all its connections, so there must be none.
  const bool is_grpc = protocol() == "grpc";
  questions_ = TRY(oip::MakeClient(
      url_.server, {.threads = is_grpc ? 0 : 1, .headers = flags_.headers, .timeout = kPatience}, clock_));
  info_ = TRY_CONTEXT(questions_->Info(url_.model, url_.version), url_.server);
  if (flags_.splits_responses()) TRY_STATUS(CheckTellsDurations());
  TRY_STATUS(CheckPriority());
  client_ = TRY(oip::MakeClient(url_.server, options_, clock_));
  return {};
}

// Asked beforehand: other servers take the parameter and tell nothing.
Status RemoteTarget::CheckTellsDurations() {
  const auto extensions = TRY_CONTEXT(questions_->Extensions(), url_.server);
  if (std::ranges::find(extensions, oip::kDurations) != extensions.end()) return {};
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("--split response: {} does not tell its durations with a response (it lists no extension "
                  "{}): leave it out, and its statistics are asked instead",
                  url_.server, oip::kDurations));
}

// A model without priorities takes any and passes it over, so that the flag would seem to work.
Status RemoteTarget::CheckPriority() const {
  if (flags_.priority == 0 || !info_.priority_levels) return {};
  const int levels = *info_.priority_levels;
  if (levels == 0) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("--priority {}: {} at {} has no priorities; set dynamic_batching {{ priority_levels "
                    "default_priority_level }} in its configuration, or leave --priority out",
                    flags_.priority, info_.name, url_.server));
  }
  if (flags_.priority <= levels) return {};
  return Invalid(fmt::format("--priority {}: the priorities of {} at {} are 1, the highest, to {}",
                             flags_.priority, info_.name, url_.server, levels));
}

RemoteTarget::~RemoteTarget() {
  client_.reset();  // what is out may write into the regions until then
  for (const std::string& region : regions_) (void)questions_->UnregisterRegion(region);
}

Status RemoteTarget::Prepare(load::Requests& requests) {
  if (flags_.shared_memory == "system") {
    if (requests.check)
      return Invalid("--check reads the answers, and those stay in shared memory: leave one of them out");
    const std::string name = fmt::format("weir-load-{}", getpid());
    shared_ = TRY(load::ShareRequests(requests.pool, info_, flags_.batch,
                                      static_cast<uint64_t>(flags_.output_shared_memory), name));
    requests.pool = shared_.requests;
    for (const auto& [ending, memory] :
         {std::pair("-in", shared_.inputs.get()), {"-out", shared_.outputs.get()}}) {
      if (memory == nullptr) continue;
      const Status known = questions_->RegisterRegion(name + ending, memory->key(), memory->size());
      if (!known) return Context("--shared-memory system", known.error());
      regions_.push_back(name + ending);
      memory->Hide();
    }
  }
  for (size_t i = 0; i < requests.pool.size(); ++i) {
    infer::RequestForm form = shared_.forms.empty() ? infer::RequestForm{} : std::move(shared_.forms[i]);
    if (!requests.check) form.outputs = infer::RequestForm::Outputs::kPassOver;
    requests.pool[i].durations = flags_.splits_responses();
    requests.pool[i].priority = flags_.priority;
    infer::Request bare;
    bare.prepared = client_->Prepare(requests.pool[i], form);
    requests.pool[i] = std::move(bare);
  }
  return {};
}

// Requests of which each has one input, the body; see BodyRequests of load_requests.cc.
class PlainTarget final : public LoadTarget {
 public:
  PlainTarget(std::string server, std::string path, http::ClientOptions options, const LoadFlags& flags,
              const Clock& clock)
      : server_(std::move(server)), path_(std::move(path)), options_(options), flags_(flags), clock_(clock) {
    info_.name = path_;
  }
  Status Open() {
    client_ = TRY(oip::PlainHttp::Create(server_, options_, clock_));
    return {};
  }

  infer::Service& service() override { return *client_; }
  bool is_driven() const override { return options_.threads == 0; }
  Duration Drive(Instant until, Duration awake) override { return client_->Drive(until, awake); }
  void GiveUp() override {
    client_.reset();
    client_ = oip::PlainHttp::Create(server_, options_, clock_).value();  // as it was made before
  }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return ""; }
  std::string Title() const override { return fmt::format("{} {}{}", flags_.method, server_, path_); }
  std::string protocol() const override { return "http"; }
  std::optional<infer::PhaseTotals> Statistics() override { return std::nullopt; }
  Status Prepare(load::Requests& requests) override;

 private:
  const std::string server_, path_;
  const http::ClientOptions options_;
  const LoadFlags& flags_;
  const Clock& clock_;
  infer::ModelInfo info_;
  std::unique_ptr<oip::PlainHttp> client_;
};

Status PlainTarget::Prepare(load::Requests& requests) {
  for (infer::Request& request : requests.pool) {
    oip::PlainRequest plain{.method = flags_.method, .path = path_};
    if (!request.inputs.empty()) {
      plain.content_type = flags_.content_type;
      plain.body = request.inputs.front().data;
    }
    request = {};
    request.prepared = TRY(client_->Prepare(plain));
  }
  return {};
}

Result<std::unique_ptr<LoadTarget>> OpenPlain(const LoadFlags& flags, const Clock& clock) {
  const LoadFlags usual;
  const std::pair<const char*, bool> others[] = {
      {"MODEL", !flags.target.empty()},
      {"-m", !flags.model.empty()},
      {"-u", !flags.url.empty()},
      {"-x", !flags.version.empty()},
      {"-i", flags.is_grpc()},
      {"--data", !flags.data.empty()},
      {"--input-data", !flags.input_data.empty()},
      {"--shape", !flags.shapes.empty()},
      {"--payload", flags.payload != "tensor"},
      {"--check", !flags.check.empty()},
      {"--shared-memory", flags.shared_memory != "none"},
      {"--engine", !flags.engine.empty()},
      {"--precision", !flags.precision.empty()},
      {"--channels", flags.channels != 1},
      {"--priority", flags.priority > 0},
      {"--batch-size", flags.batch != 1},
      {"--zero-input", flags.zero_input},
      {"--string-data", !flags.string_data.empty()},
      {"--string-length", flags.string_length != usual.string_length},
      {"--pool", flags.pool != usual.pool},
      {"--calibrate", flags.calibrate},
      {"--split", flags.splits_responses()},
      {"--engine-threads", flags.engine_threads > 0},
      {"--engine-streams", flags.engine_streams > 0}};
  for (const auto& [name, given] : others) {
    if (given)
      return Invalid(
          fmt::format("{} is of models, and --endpoint knows of none: leave one of them out", name));
  }
  const std::string_view url = flags.endpoint;
  const size_t scheme = url.find("://");
  const size_t slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  const std::string server(url.substr(0, slash));
  std::string path = slash == std::string::npos ? "/" : std::string(url.substr(slash));
  const http::ClientOptions options{.connections = flags.connections,
                                    .threads = flags.sync ? std::max(1, flags.threads) : flags.threads,
                                    .headers = flags.headers};
  auto target = std::make_unique<PlainTarget>(server, std::move(path), options, flags, clock);
  const Status opened = target->Open();
  if (!opened) return Context("--endpoint", opened.error());
  return target;
}

class LocalTarget final : public LoadTarget {
 public:
  explicit LocalTarget(const Clock& clock) : clock_(clock) {}
  Status Open(const LoadFlags& flags, int most_in_flight);

  infer::Service& service() override { return *runner_; }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return ""; }
  std::string Title() const override {
    return fmt::format("{} in this process: {} {}, {}, {} in {}", info_.name, opened_.engine->name(),
                       opened_.engine->version(), opened_.session->precision(),
                       Count(opened_.session->threads(), "thread"),
                       Count(opened_.session->streams(), "stream"));
  }
  std::string protocol() const override { return "in-process"; }
  std::optional<infer::PhaseTotals> Statistics() override { return std::nullopt; }
  std::map<std::string, std::string> Libraries() const override {
    return {{opened_.engine->name(), opened_.engine->version()}};
  }
  Status Prepare(load::Requests&) override { return {}; }
  void GiveUp() override;

 private:
  const Clock& clock_;
  model::Model model_;
  infer::ModelInfo info_;
  model::OpenedSession opened_;
  int most_in_flight_ = 0;
  std::unique_ptr<infer::Runner> runner_;
};

void LocalTarget::GiveUp() {
  runner_.reset();
  runner_ = infer::Runner::Create(opened_.session, clock_, {.max_queue = most_in_flight_ + 1}).value();
}

Status LocalTarget::Open(const LoadFlags& flags, int most_in_flight) {
  model_ = TRY(model::OpenModel(flags.target, {.recipe = flags.recipe, .version = flags.version}));
  infer::SessionOptions options = model::SessionDefaults(model_);
  if (!flags.precision.empty()) options.precision = flags.precision;
  if (flags.engine_threads > 0) options.threads = flags.engine_threads;
  if (flags.engine_streams > 0) options.streams = flags.engine_streams;
  options.batch = flags.batch;
  opened_ = TRY(model::OpenSession(model_, flags.engine, options, clock_));
  // Below the server's rules: what the engine is given, first dimension and all.
  const bool batches =
      !model_.fixed_batch && std::ranges::all_of(model_.inputs, [](const infer::TensorInfo& input) {
        return !input.shape.empty() && input.shape.front() == -1;
      });
  info_ = {.name = model_.name,
           .versions = {},
           .platform = opened_.engine->name(),
           .inputs = model_.inputs,
           .outputs = model_.outputs,
           .max_batch = batches ? model_.max_batch.value_or(65536) : 0,
           .parameters = {}};
  most_in_flight_ = most_in_flight;
  runner_ = TRY(infer::Runner::Create(opened_.session, clock_, {.max_queue = most_in_flight + 1}));
  return {};
}

// perf_analyzer's -m NAME -u HOST:PORT -i PROTOCOL as a URL.
Result<std::string> UrlOf(const LoadFlags& flags) {
  if (flags.model.empty()) return Invalid("load wants a model: MODEL, or -m NAME with -u HOST:PORT");
  const bool grpc = flags.is_grpc();
  std::string server = flags.url.empty() ? (grpc ? "localhost:8001" : "localhost:8000") : flags.url;
  if (const size_t scheme = server.find("://"); scheme != std::string::npos) {
    if (server.substr(0, scheme) != "http" && server.substr(0, scheme) != "grpc")
      return Invalid(fmt::format("-u {}: HOST:PORT, http:// or grpc:// is understood", flags.url));
    if (grpc) server = "grpc" + server.substr(scheme);
  } else {
    server = (grpc ? "grpc://" : "http://") + server;
  }
  return server + "/" + flags.model + (flags.version.empty() ? "" : "/versions/" + flags.version);
}

Result<std::unique_ptr<LoadTarget>> OpenRemote(const LoadFlags& flags, const std::string& url,
                                               const Clock& clock) {
  const std::pair<const char*, bool> local[] = {{"--engine", !flags.engine.empty()},
                                                {"--precision", !flags.precision.empty()},
                                                {"--engine-threads", flags.engine_threads > 0},
                                                {"--engine-streams", flags.engine_streams > 0}};
  for (const auto& [name, given] : local) {
    if (given)
      return Invalid(fmt::format(
          "{} is the server's to say: leave it out, and set it in the configuration of the model there",
          name));
  }
  oip::ModelUrl at = TRY(oip::ParseModelUrl(url));
  at.model = oip::ServedAs(at.model, flags.payload);
  const bool grpc = at.server.starts_with("grpc");
  if (grpc && flags.connections > 0) return Invalid("--connections is of HTTP: over gRPC it is --channels");
  if (!grpc && flags.channels != LoadFlags().channels)
    return Invalid("--channels is of gRPC: over HTTP it is --connections");
  const http::ClientOptions options{.connections = grpc ? flags.channels : flags.connections,
                                    .threads = flags.sync ? std::max(1, flags.threads) : flags.threads,
                                    .headers = flags.headers};
  // One thread does nearly all. What the timers of the gRPC library leave in heaps of their own would come to
  // half as much again where thousands of calls at a time run into their limit.
  if (options.threads == 0) ::mallopt(M_ARENA_MAX, 1);
  auto remote = std::make_unique<RemoteTarget>(std::move(at), options, flags, clock);
  TRY_STATUS(remote->Open());
  return remote;
}

}  // namespace

Result<std::unique_ptr<LoadTarget>> OpenLoadTarget(const LoadFlags& flags, const Clock& clock,
                                                   int most_in_flight) {
  if (!flags.endpoint.empty()) return OpenPlain(flags, clock);
  if (!flags.target.empty() && (!flags.model.empty() || !flags.url.empty()))
    return Invalid(fmt::format("{} names the model already: leave -m and -u out", flags.target));
  if (flags.target.empty()) return OpenRemote(flags, TRY(UrlOf(flags)), clock);
  if (oip::IsModelUrl(flags.target)) {
    if (!flags.version.empty())
      return Invalid(
          fmt::format("-x says nothing of a URL: {}/versions/{} names it", flags.target, flags.version));
    return OpenRemote(flags, flags.target, clock);
  }
  if (flags.payload != "tensor")
    return Invalid(fmt::format(
        "--payload {} is for served models: in this process the model is given its tensor", flags.payload));
  const LoadFlags usual;
  if (flags.connections != usual.connections || flags.channels != usual.channels ||
      flags.threads != usual.threads)
    return Invalid(
        "--connections, --channels and --io-threads are of a server: in this process there is no way to it");
  if (flags.calibrate)
    return Invalid("--calibrate measures the way to a server: in this process there is none");
  if (flags.splits_responses())
    return Invalid("--split response asks a server: in this process there is none to tell");
  if (flags.priority > 0)
    return Invalid("--priority is for served models: in this process nothing waits beside these requests");
  if (!flags.headers.empty()) return Invalid("-H is of a server: in this process there is nobody to read it");
  if (flags.shared_memory != "none")
    return Invalid("--shared-memory is for servers: in this process the model is given its tensor");
  auto local = std::make_unique<LocalTarget>(clock);
  TRY_STATUS(local->Open(flags, most_in_flight));
  return local;
}

}  // namespace weir::cli
