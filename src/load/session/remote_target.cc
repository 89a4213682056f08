#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "http/client_options.h"
#include "load/inputs/shared_memory.h"
#include "load/session/balance.h"
#include "load/session/target.h"
#include "oip/client.h"
#include "oip/infer_rules.h"
#include "oip/served_name.h"

namespace weir::load {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

constexpr std::chrono::seconds kPatience{5};  // with a question beside the load

class RemoteTarget final : public Target {
 public:
  RemoteTarget(oip::ModelUrl url, http::ClientOptions options, infer::Balance balance,
               const LoadOptions& load, const Clock& clock)
      : url_(std::move(url)), options_(options), balance_(balance), load_(load), clock_(clock) {}
  ~RemoteTarget() override;
  Status Open();

  infer::Service& service() override { return *client_; }
  bool is_driven() const override { return options_.threads == 0; }
  Duration Drive(Instant until, Duration awake) override { return client_->Drive(until, awake); }
  void GiveUp() override {
    const std::vector<infer::ServerCalls> calls = client_->Calls();
    client_.reset();
    client_ = oip::MakeClient(url_.server, options_, clock_, balance_).value();  // as it was made before
    AddCalls(calls, earlier_calls_);
  }
  const infer::ModelInfo& info() const override { return info_; }
  std::string version() const override { return url_.version; }
  std::string Title() const override { return fmt::format("{} at {}", info_.name, url_.server); }
  std::string protocol() const override { return url_.server.substr(0, 4); }
  std::optional<infer::PhaseTotals> Statistics() override {
    auto totals = questions_->Statistics(info_.name, url_.version);
    return totals ? std::optional(*std::move(totals)) : std::nullopt;
  }
  Status Prepare(Requests& requests) override;
  std::vector<infer::ServerCalls> Calls() const override {
    std::vector<infer::ServerCalls> calls = client_->Calls();
    AddCalls(earlier_calls_, calls);
    return calls;
  }

 private:
  Status CheckTellsDurations();
  Status CheckPriority() const;

  const oip::ModelUrl url_;
  const http::ClientOptions options_;
  const infer::Balance balance_;
  const LoadOptions& load_;
  const Clock& clock_;
  SharedRequests shared_;
  std::vector<std::string> regions_;            // registered with the server
  std::unique_ptr<infer::Endpoint> questions_;  // apart from the load
  std::unique_ptr<infer::Endpoint> client_;
  std::vector<infer::ServerCalls> earlier_calls_;  // of clients before this one
  infer::ModelInfo info_;
};

Status RemoteTarget::Open() {
  // Idle threads of the gRPC library take part in the polling of all its connections, so there must be none.
  const bool is_grpc = protocol() == ToString(infer::Protocol::kGrpc);
  questions_ = TRY(oip::MakeClient(
      url_.server, {.threads = is_grpc ? 0 : 1, .headers = load_.headers, .timeout = kPatience}, clock_));
  info_ = TRY_CONTEXT(questions_->Info(url_.model, url_.version), url_.server);
  if (load_.splits_responses()) TRY_STATUS(CheckTellsDurations());
  TRY_STATUS(CheckPriority());
  client_ = TRY(oip::MakeClient(url_.server, options_, clock_, balance_));
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
  if (load_.priority == 0 || !info_.priority_levels) return {};
  const int levels = *info_.priority_levels;
  if (levels == 0) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("--priority {}: {} at {} has no priorities; set dynamic_batching {{ priority_levels "
                    "default_priority_level }} in its configuration, or leave --priority out",
                    load_.priority, info_.name, url_.server));
  }
  if (load_.priority <= levels) return {};
  return Invalid(fmt::format("--priority {}: the priorities of {} at {} are 1, the highest, to {}",
                             load_.priority, info_.name, url_.server, levels));
}

RemoteTarget::~RemoteTarget() {
  client_.reset();  // what is out may write into the regions until then
  for (const std::string& region : regions_) (void)questions_->UnregisterRegion(region);
}

Status RemoteTarget::Prepare(Requests& requests) {
  if (load_.shared_memory == infer::SharedMemory::kSystem) {
    if (requests.check)
      return Invalid("--check reads the answers, and those stay in shared memory: leave one of them out");
    const std::string name = fmt::format("weir-load-{}", getpid());
    shared_ = TRY(ShareRequests(requests.pool, info_, load_.batch,
                                static_cast<uint64_t>(load_.output_shared_memory), name));
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
    requests.pool[i].durations = load_.splits_responses();
    requests.pool[i].priority = load_.priority;
    infer::Request bare;
    bare.prepared = client_->Prepare(requests.pool[i], form);
    requests.pool[i] = std::move(bare);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Target>> OpenRemoteTarget(const LoadOptions& load, const std::string& url,
                                                 const Clock& clock) {
  const std::pair<const char*, bool> local[] = {{"--engine", !load.engine.empty()},
                                                {"--device", !load.device.empty()},
                                                {"--cuda-graph", load.cuda_graph},
                                                {"--preprocess", load.preprocess.has_value()},
                                                {"--precision", !load.precision.empty()},
                                                {"--allow-link", !load.allow_links.empty()},
                                                {"--engine-threads", load.engine_threads > 0},
                                                {"--engine-streams", load.engine_streams > 0}};
  for (const auto& [name, given] : local) {
    if (given)
      return Invalid(fmt::format(
          "{} is the server's to say: leave it out, and set it in the configuration of the model there",
          name));
  }
  oip::ModelUrl at = TRY(oip::ParseModelUrl(url));
  at.model = oip::ServedAs(at.model, load.payload);
  const bool grpc = at.server.starts_with("grpc");
  if (grpc && load.connections > 0) return Invalid("--connections is of HTTP: over gRPC it is --channels");
  if (!grpc && load.channels != LoadOptions().channels)
    return Invalid("--channels is of gRPC: over HTTP it is --connections");
  const http::ClientOptions options{.connections = grpc ? load.channels : load.connections,
                                    .threads = load.sync ? std::max(1, load.threads) : load.threads,
                                    .headers = load.headers};
  // One thread does nearly all. What the timers of the gRPC library leave in heaps of their own would come to
  // half as much again where thousands of calls at a time run into their limit.
  if (options.threads == 0) ::mallopt(M_ARENA_MAX, 1);
  TRY_STATUS(oip::CheckBalance(load.balance, at.server));
  const infer::Balance balance = load.balance;
  auto remote = std::make_unique<RemoteTarget>(std::move(at), options, balance, load, clock);
  TRY_STATUS(remote->Open());
  return remote;
}

}  // namespace weir::load
