#include "cli/load_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"
#include "infer/runner.h"
#include "model/model.h"
#include "wire/client.h"

namespace weir::cli {
namespace {

std::unexpected<Error> Invalid(std::string message) { return Fail(ErrorCode::kInvalidArgument, std::move(message)); }

class RemoteTarget final : public LoadTarget {
 public:
  RemoteTarget(wire::ModelUrl url, std::unique_ptr<infer::Endpoint> client, infer::ModelInfo info)
      : url_(std::move(url)), client_(std::move(client)), info_(std::move(info)) {}

  infer::Service& service() override { return *client_; }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return url_.version; }
  std::string Title() const override { return fmt::format("{} at {}", info_.name, url_.server); }
  std::string protocol() const override { return url_.server.substr(0, 4); }
  std::optional<infer::PhaseTotals> Statistics() override {
    auto totals = client_->Statistics(info_.name, url_.version);
    return totals ? std::optional(*std::move(totals)) : std::nullopt;
  }
  void Prepare(load::Requests& requests) override {
    for (infer::Request& request : requests.pool) {
      if (auto prepared = client_->Prepare(request)) request = {.prepared = std::move(prepared)};
    }
  }

 private:
  const wire::ModelUrl url_;
  const std::unique_ptr<infer::Endpoint> client_;
  const infer::ModelInfo info_;
};

class LocalTarget final : public LoadTarget {
 public:
  explicit LocalTarget(const Clock& clock) : clock_(clock) {}
  Status Open(const LoadFlags& flags, int most_in_flight);

  infer::Service& service() override { return *runner_; }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return ""; }
  std::string Title() const override {
    return fmt::format("{} in this process: {} {}, {}, {} in {}", info_.name, opened_.engine->name(), opened_.engine->version(),
                       opened_.session->precision(), Count(opened_.session->threads(), "thread"),
                       Count(opened_.session->streams(), "stream"));
  }
  std::string protocol() const override { return "in-process"; }
  std::optional<infer::PhaseTotals> Statistics() override { return std::nullopt; }
  std::map<std::string, std::string> Libraries() const override { return {{opened_.engine->name(), opened_.engine->version()}}; }
  void Prepare(load::Requests&) override {}

 private:
  const Clock& clock_;
  model::Model model_;
  infer::ModelInfo info_;
  model::OpenedSession opened_;
  std::unique_ptr<infer::Runner> runner_;
};

Status LocalTarget::Open(const LoadFlags& flags, int most_in_flight) {
  model_ = TRY(model::OpenModel(flags.target, {.recipe = flags.recipe, .version = flags.version}));
  infer::SessionOptions options = model::SessionDefaults(model_);
  if (!flags.precision.empty()) options.precision = flags.precision;
  if (flags.engine_threads > 0) options.threads = flags.engine_threads;
  if (flags.engine_streams > 0) options.streams = flags.engine_streams;
  options.batch = flags.batch;
  opened_ = TRY(model::OpenSession(model_, flags.engine, options, clock_));
  // Below the server's rules: what the engine is given, first dimension and all.
  const bool batches = !model_.fixed_batch && std::ranges::all_of(model_.inputs, [](const infer::TensorInfo& input) {
    return !input.shape.empty() && input.shape.front() == -1;
  });
  info_ = {.name = model_.name, .versions = {}, .platform = opened_.engine->name(), .inputs = model_.inputs, .outputs = model_.outputs,
           .max_batch = batches ? model_.max_batch.value_or(65536) : 0, .parameters = {}};
  runner_ = TRY(infer::Runner::Create(opened_.session, clock_, {.max_queue = most_in_flight + 1}));
  return {};
}

// perf_analyzer's -m NAME -u HOST:PORT -i PROTOCOL as a URL.
Result<std::string> UrlOf(const LoadFlags& flags) {
  if (flags.model.empty()) return Invalid("load wants a model: MODEL, or -m NAME with -u HOST:PORT");
  const bool grpc = flags.protocol != "http" && flags.protocol != "HTTP";
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

Result<std::unique_ptr<LoadTarget>> OpenRemote(const LoadFlags& flags, const std::string& url, const Clock& clock) {
  const std::pair<const char*, bool> local[] = {{"--engine", !flags.engine.empty()},
                                                {"--precision", !flags.precision.empty()},
                                                {"--engine-threads", flags.engine_threads > 0},
                                                {"--engine-streams", flags.engine_streams > 0}};
  for (const auto& [name, given] : local) {
    if (given) return Invalid(fmt::format("{} is the server's to say: leave it out, and set it in the configuration of the model there", name));
  }
  wire::ModelUrl at = TRY(wire::ParseModelUrl(url));
  if (flags.payload != "tensor") at.model += "." + flags.payload;
  const bool grpc = at.server.starts_with("grpc");
  auto client = TRY(wire::MakeClient(at.server, {.connections = grpc ? flags.channels : flags.connections, .threads = flags.threads}, clock));
  infer::ModelInfo info = TRY_CONTEXT(client->Info(at.model, at.version), at.server);
  return std::make_unique<RemoteTarget>(std::move(at), std::move(client), std::move(info));
}

}  // namespace

Result<std::unique_ptr<LoadTarget>> OpenLoadTarget(const LoadFlags& flags, const Clock& clock, int most_in_flight) {
  if (!flags.target.empty() && (!flags.model.empty() || !flags.url.empty()))
    return Invalid(fmt::format("{} names the model already: leave -m and -u out", flags.target));
  if (flags.target.empty()) return OpenRemote(flags, TRY(UrlOf(flags)), clock);
  if (wire::IsModelUrl(flags.target)) return OpenRemote(flags, flags.target, clock);
  if (flags.payload != "tensor") return Invalid(fmt::format("--payload {} is for served models: in this process the model is given its tensor", flags.payload));
  auto local = std::make_unique<LocalTarget>(clock);
  TRY_STATUS(local->Open(flags, most_in_flight));
  return local;
}

}  // namespace weir::cli
