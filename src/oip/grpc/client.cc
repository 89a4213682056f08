#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <thread>
#include <utility>

// The library's headers bring macros of these names; ours are meant below.
#undef GUARDED_BY
#undef NO_THREAD_SAFETY_ANALYSIS
#include "base/mutex.h"
#include "base/text.h"
#include "base/thread.h"
#include "http/request_headers.h"
#include "http/server_url.h"
#include "oip/client.h"
#include "oip/client_rules.h"
#include "oip/clients.h"
#include "oip/grpc/bytes.h"
#include "oip/grpc/codec.h"
#include "oip/grpc/tsan_annotations.h"
#include "oip/model_facts.h"
#include "oip/oip.grpc.pb.h"
#include "oip/status.h"

namespace weir::oip {
namespace {

constexpr int kReconnectAfterMs = 100;  // a server that was restarted is found again this soon
constexpr int kReconnectAfterMsAtMost = 2000;
constexpr int kFrame = 1 << 20;   // of HTTP/2, and of a write: a large tensor goes in few
constexpr int kWindow = 4 << 20;  // bytes that may come before they are taken

gpr_timespec ToTimespec(Instant when) {
  const int64_t ns = when.time_since_epoch().count();
  return {.tv_sec = ns / 1'000'000'000,
          .tv_nsec = static_cast<int32_t>(ns % 1'000'000'000),
          .clock_type = GPR_CLOCK_MONOTONIC};
}

// How a client reaches its servers.
struct Way {
  std::string address;  // the servers, as messages name them
  std::string target;   // as the library names them
  bool round_robin = false;
};

// The library resolves names; an address needs no resolver.
std::string TargetOf(const http::ServerUrl& server) {
  if (!server.literal()) return "dns:///" + server.Address();
  if (!server.host.contains(':')) return "ipv4:" + server.Address();
  return fmt::format("ipv6:%5B{}%5D:{}", server.host, server.port);
}

std::shared_ptr<grpc::Channel> MakeChannel(const Way& way, const http::ClientOptions& options) {
  grpc::ChannelArguments arguments;
  if (way.round_robin) arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // each channel a connection of its own
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectAfterMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectAfterMsAtMost);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(options.connect_timeout.count()));
  // Without the library's optional filters (compression, statistics, limits) a small call costs a fifth less;
  // the deadline's is needed.
  arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrame);
  arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, kFrame);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
  return grpc::CreateCustomChannel(way.target, grpc::InsecureChannelCredentials(), arguments);
}

// A status that the server did not send is the library's own: of the connection, the deadline or a cancel.
Error ErrorOf(const grpc::Status& status, const grpc::ClientContext& context, const std::string& address) {
  const bool from_server = context.debug_error_string().contains("from peer");
  if (!from_server && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return {ErrorCode::kDeadline, fmt::format("{}: no answer in time", address)};
  if (!from_server && status.error_code() == grpc::StatusCode::CANCELLED)
    return {ErrorCode::kCancelled, fmt::format("the caller left before {} answered", address)};
  if (!from_server && status.error_code() == grpc::StatusCode::UNAVAILABLE)
    return {ErrorCode::kIo, fmt::format("connect to {}: {}", address,
                                        CutToOneLine(status.error_message(), kMaxServerErrorText))};
  return {FromGrpcStatus(status.error_code()), CutToOneLine(status.error_message(), kMaxServerErrorText)};
}

// The message of a request. Copies of it share its bytes.
struct PreparedGrpc final : infer::PreparedRequest {
  grpc::ByteBuffer message;
  Wanted wanted;
};

// The calls of a client that reaches several servers, by the address that took them. Thread-safe.
class PeerCounts {
 public:
  void Add(const std::string& peer, const Result<infer::Response>& result) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    infer::ServerCalls& calls = counts_[peer];
    if (result) {
      calls.answered += 1;
      return;
    }
    const ErrorCode code = result.error().code;
    (code == ErrorCode::kIo || code == ErrorCode::kOverloaded ? calls.moved : calls.failed) += 1;
  }
  std::vector<infer::ServerCalls> Calls() const EXCLUDES(mutex_) {
    std::vector<infer::ServerCalls> calls;
    MutexLock lock(mutex_);
    for (const auto& [peer, counts] : counts_) {
      calls.push_back(counts);
      // "ipv4:10.0.0.1:8001"; anything else is the target: no server took the call.
      const bool is_address = peer.starts_with("ipv4:") || peer.starts_with("ipv6:");
      calls.back().server = is_address && !peer.contains(',') ? "grpc://" + peer.substr(5) : "no server";
    }
    return calls;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, infer::ServerCalls> counts_ GUARDED_BY(mutex_);
};

// The client that a call is of. Calls keep it.
struct Caller {
  std::string address;
  std::unique_ptr<PeerCounts> peers;  // null: there is one server
};

// An inference on its way.
struct PendingCall {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  grpc::ByteBuffer answer;
  grpc::Status status;
  infer::Completion completion;
  infer::Times times;
  Wanted wanted;
  std::shared_ptr<const Caller> caller;
  std::list<PendingCall>::iterator place;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel;
};

// A completion queue and its thread, "client-N".
class Lane {
 public:
  enum class Runs { kItself, kWhenDriven };
  Lane(const Clock& clock, int number, Runs runs) : clock_(clock) {
    if (runs == Runs::kItself)
      thread_ = StartThread(fmt::format("client-{}", number), [this](std::stop_token) { Work(); });
  }
  ~Lane();
  Duration Drive(Instant until, Duration awake);

  void Start(grpc::GenericStub& stub, infer::Call call, std::optional<Instant> due,
             const std::vector<http::RequestHeader>& metadata, std::shared_ptr<const Caller> caller);

 private:
  void Work();
  void Take(void* tag);
  void TakeAll();
  void End(PendingCall& pending);
  Result<infer::Response> Understand(PendingCall& pending);
  bool IsLikeTheLast(const grpc::ByteBuffer& answer) const;
  Result<infer::Response> FindWhole(const grpc::ByteBuffer& answer);

  const Clock& clock_;
  grpc::CompletionQueue queue_;
  // Used by the thread that takes calls from the queue.
  int in_a_row_ = 0;  // taken
  // The last answer that was found whole: what lies before its one tensor, and the size of all of it.
  std::string whole_head_;
  size_t whole_size_ = 0;

  Mutex mutex_;
  std::list<PendingCall> pending_ GUARDED_BY(mutex_);

  std::jthread thread_;
};

Lane::~Lane() {
  {
    MutexLock lock(mutex_);
    for (PendingCall& pending : pending_) pending.context.TryCancel();
  }
  queue_.Shutdown();  // what is cancelled still comes out of it
  if (!thread_.joinable()) Work();
}

void Lane::Start(grpc::GenericStub& stub, infer::Call call, std::optional<Instant> due,
                 const std::vector<http::RequestHeader>& metadata, std::shared_ptr<const Caller> caller) {
  std::list<PendingCall> one(1);
  PendingCall& pending = one.front();
  pending.place = one.begin();
  pending.caller = std::move(caller);
  if (due) pending.context.set_deadline(ToTimespec(*due));
  for (const http::RequestHeader& header : metadata) pending.context.AddMetadata(header.name, header.value);
  pending.completion = std::move(call.completion);
  pending.times = call.times;
  const std::stop_token cancelled = std::move(call.request.cancelled);
  static const std::string kMethod = "/inference.GRPCInferenceService/ModelInfer";
  const auto* prepared = static_cast<const PreparedGrpc*>(call.request.prepared.get());
  pending.wanted = prepared ? prepared->wanted : Wanted{.durations = call.request.durations};
  pending.reader =
      stub.PrepareUnaryCall(&pending.context, kMethod,
                            prepared ? prepared->message : ToGrpc(WriteGrpcRequest(call.request)), &queue_);
  call = {};  // its payload is the library's now, which lets go of it once it is sent
  if (cancelled.stop_possible())
    pending.on_cancel.emplace(cancelled, [&pending] { pending.context.TryCancel(); });
  {
    MutexLock lock(mutex_);
    pending_.splice(pending_.end(), one);
  }
  AnnotateRelease();
  pending.reader->StartCall();
  pending.reader->Finish(&pending.answer, &pending.status, &pending);
}

void Lane::Work() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) Take(tag);
}

void Lane::Take(void* tag) {
  constexpr int kMostInARow = 64;
  End(*static_cast<PendingCall*>(tag));
  if (++in_a_row_ >= kMostInARow) TakeAll();
}

// All that have ended, before what comes of that begins others. The library looks at its sockets only where
// it has no call to hand out, and not the first time after a call has ended outside of its wait (epoll1's
// kicked_without_poller): where calls time out as fast as they are taken and others begun, it would never
// again, so that no answer is read and all of them time out for good.
void Lane::TakeAll() {
  in_a_row_ = 0;
  std::vector<PendingCall*> ended;
  void* tag = nullptr;
  bool ok = false;
  for (int looks = 0; looks < 2;) {
    const auto got = queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (got == grpc::CompletionQueue::GOT_EVENT) {
      ended.push_back(static_cast<PendingCall*>(tag));
    } else {
      ++looks;
    }
  }
  for (PendingCall* pending : ended) End(*pending);
}

// The library sleeps by whole milliseconds: nearer to the end it is asked without waiting.
Duration Lane::Drive(Instant until, Duration awake) {
  constexpr Duration kFinest = 1500us;
  if (awake > Duration{}) awake = std::max(awake, kFinest);
  Duration spun{};
  Instant now = clock_.Now();
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    const bool sleeps = until - now > awake;
    const auto limit = sleeps ? ToTimespec(until - awake) : gpr_time_0(GPR_CLOCK_MONOTONIC);
    const bool got = queue_.AsyncNext(&tag, &ok, limit) == grpc::CompletionQueue::GOT_EVENT;
    if (got) {
      Take(tag);
    } else {
      in_a_row_ = 0;
    }
    const Instant before = std::exchange(now, clock_.Now());
    if (!got && !sleeps) spun += now - before;
    if (now < until) continue;
    if (got) TakeAll();  // a generator that is late lets no call that has ended grow old
    return spun;
  }
}

void Lane::End(PendingCall& pending) {
  AnnotateAcquire();
  const Instant now = clock_.Now();
  std::list<PendingCall> one;
  {
    MutexLock lock(mutex_);
    one.splice(one.end(), pending_, pending.place);
  }
  pending.times.done = now;
  pending.on_cancel.reset();
  auto result = Understand(pending);
  if (pending.caller->peers) pending.caller->peers->Add(pending.context.peer(), result);
  pending.completion.Answer(std::move(result), pending.times);
}

Result<infer::Response> Lane::Understand(PendingCall& pending) {
  if (!pending.status.ok())
    return std::unexpected(ErrorOf(pending.status, pending.context, pending.caller->address));
  const grpc::ByteBuffer answer = std::exchange(pending.answer, {});
  const std::string& address = pending.caller->address;
  if (!pending.wanted.nothing())
    return Readable(
        WithDurations(ParseGrpcResponse(FromGrpc(answer), pending.wanted.outputs), pending.wanted), address);
  if (pending.wanted.in_regions || IsLikeTheLast(answer)) return infer::Response{};
  return Readable(FindWhole(answer), address);
}

// One that begins as that and is as large needs no reading.
bool Lane::IsLikeTheLast(const grpc::ByteBuffer& answer) const {
  grpc::Slice message;
  if (whole_size_ == 0 || answer.Length() != whole_size_ || !answer.TrySingleSlice(&message).ok())
    return false;
  return std::memcmp(message.begin(), whole_head_.data(), whole_head_.size()) == 0;
}

Result<infer::Response> Lane::FindWhole(const grpc::ByteBuffer& answer) {
  using Outputs = infer::RequestForm::Outputs;
  grpc::Slice message;
  if (!answer.TrySingleSlice(&message).ok()) return ParseGrpcResponse(FromGrpc(answer), Outputs::kPassOver);
  const infer::Response response = TRY(ParseGrpcResponse(FromGrpc(answer)));
  if (response.outputs.size() == 1 && response.outputs[0].data.size() < message.size()) {
    whole_size_ = message.size();
    whole_head_.assign(reinterpret_cast<const char*>(message.begin()),
                       message.size() - response.outputs[0].data.size());
  }
  return infer::Response{};
}

class GrpcClient final : public infer::Endpoint {
 public:
  using Lanes = std::vector<std::shared_ptr<Lane>>;
  GrpcClient(const Way& way, const http::ClientOptions& options, Lanes lanes,
             std::vector<http::RequestHeader> metadata, const Clock& clock)
      : address_(way.address),
        options_(options),
        metadata_(std::move(metadata)),
        clock_(clock),
        caller_(std::make_shared<Caller>(way.address,
                                         way.round_robin ? std::make_unique<PeerCounts>() : nullptr)),
        lanes_(std::move(lanes)) {
    for (int i = 0; i < std::max(1, options.connections); ++i) {
      channels_.push_back(MakeChannel(way, options));
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channels_.back()));
    }
    questions_ = inference::GRPCInferenceService::NewStub(channels_.front());
  }
  static Lanes MakeLanes(const http::ClientOptions& options, const Clock& clock) {
    const Lane::Runs runs = options.threads > 0 ? Lane::Runs::kItself : Lane::Runs::kWhenDriven;
    Lanes lanes;
    for (int i = 0; i < std::max(1, options.threads); ++i)
      lanes.push_back(std::make_shared<Lane>(clock, i, runs));
    return lanes;
  }

  void Submit(infer::Call call) override;
  Duration Drive(Instant until, Duration awake) override { return lanes_.front()->Drive(until, awake); }
  std::shared_ptr<const infer::PreparedRequest> Prepare(const infer::Request& request,
                                                        const infer::RequestForm& form) override {
    auto prepared = std::make_shared<PreparedGrpc>();
    prepared->message = ToGrpc(WriteGrpcRequest(request, form));
    prepared->wanted = {form.outputs, request.durations, !form.output_regions.empty()};
    return prepared;
  }
  Status RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) override;
  Status UnregisterRegion(const std::string& name) override;
  Result<std::vector<std::string>> Models() override;
  Result<infer::ModelInfo> Info(const std::string& model, const std::string& version) override;
  Result<std::vector<std::string>> Extensions() override;
  Result<infer::PhaseTotals> Statistics(const std::string& model, const std::string& version) override;
  std::vector<infer::ServerCalls> Calls() const override {
    return caller_->peers ? caller_->peers->Calls() : std::vector<infer::ServerCalls>();
  }

 private:
  // Asks one of the questions of the service that name a model.
  template <typename Answer, typename Question>
  Result<Answer> Ask(grpc::Status (inference::GRPCInferenceService::Stub::*ask)(grpc::ClientContext*,
                                                                                const Question&, Answer*),
                     const Question& question);

  const std::string address_;
  const http::ClientOptions options_;
  const std::vector<http::RequestHeader> metadata_;  // the user's own
  const Clock& clock_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;  // one a channel
  std::unique_ptr<inference::GRPCInferenceService::Stub> questions_;
  std::atomic<size_t> next_ = 0;
  const std::shared_ptr<const Caller> caller_;
  Lanes lanes_;  // shared with the clients that are driven together
};

void GrpcClient::Submit(infer::Call call) {
  if (!call.times.sent) call.times.sent = clock_.Now();
  const std::optional<Instant> due = DueOf(call, options_, clock_);
  const size_t turn = next_.fetch_add(1, std::memory_order_relaxed);
  lanes_[turn % lanes_.size()]->Start(*stubs_[turn % stubs_.size()], std::move(call), due, metadata_,
                                      caller_);
}

template <typename Answer, typename Question>
Result<Answer> GrpcClient::Ask(grpc::Status (inference::GRPCInferenceService::Stub::*ask)(
                                   grpc::ClientContext*, const Question&, Answer*),
                               const Question& question) {
  grpc::ClientContext context;
  context.set_deadline(ToTimespec(clock_.Now() + QuestionTime(options_)));
  for (const http::RequestHeader& header : metadata_) context.AddMetadata(header.name, header.value);
  Answer answer;
  const grpc::Status status = (questions_.get()->*ask)(&context, question, &answer);
  if (!status.ok()) return std::unexpected(ErrorOf(status, context, address_));
  return answer;
}

Status GrpcClient::RegisterRegion(const std::string& name, const std::string& key, uint64_t byte_size) {
  inference::SystemSharedMemoryRegisterRequest question;
  question.set_name(name);
  question.set_key(key);
  question.set_byte_size(byte_size);
  TRY(Ask(&inference::GRPCInferenceService::Stub::SystemSharedMemoryRegister, question));
  return {};
}

Status GrpcClient::UnregisterRegion(const std::string& name) {
  inference::SystemSharedMemoryUnregisterRequest question;
  question.set_name(name);
  TRY(Ask(&inference::GRPCInferenceService::Stub::SystemSharedMemoryUnregister, question));
  return {};
}

Result<std::vector<std::string>> GrpcClient::Models() {
  inference::RepositoryIndexRequest question;
  question.set_ready(true);
  auto index = Ask(&inference::GRPCInferenceService::Stub::RepositoryIndex, question);
  if (!index && index.error().code == ErrorCode::kUnsupported)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} does not list its models", address_));
  if (!index) return std::unexpected(std::move(index).error());
  std::vector<std::string> names;
  for (const auto& model : index->models()) {
    const bool ready = model.state().empty() || model.state() == "READY";
    if (ready && std::ranges::find(names, model.name()) == names.end()) names.push_back(model.name());
  }
  return names;
}

Result<std::vector<infer::TensorInfo>> ReadTensors(
    const google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& tensors) {
  std::vector<infer::TensorInfo> infos;
  for (const auto& tensor : tensors) {
    infos.push_back({.name = tensor.name(),
                     .dtype = TRY(infer::ParseDType(tensor.datatype())),
                     .shape = infer::Shape(tensor.shape().begin(), tensor.shape().end())});
  }
  return infos;
}

Result<infer::ModelInfo> GrpcClient::Info(const std::string& model, const std::string& version) {
  inference::ModelMetadataRequest question;
  question.set_name(model);
  question.set_version(version);
  const auto metadata = TRY(Ask(&inference::GRPCInferenceService::Stub::ModelMetadata, question));
  infer::ModelInfo info{.name = metadata.name(),
                        .versions = {metadata.versions().begin(), metadata.versions().end()},
                        .platform = metadata.platform(),
                        .inputs = TRY(Readable(ReadTensors(metadata.inputs()), address_)),
                        .outputs = TRY(Readable(ReadTensors(metadata.outputs()), address_))};
  inference::ModelConfigRequest wish;
  wish.set_name(model);
  wish.set_version(version);
  const auto configuration = Ask(&inference::GRPCInferenceService::Stub::ModelConfig, wish);
  if (configuration) {
    TRY_STATUS(Readable(AddConfigurationMessage(configuration->config(), info), address_));
  } else if (configuration.error().code != ErrorCode::kUnsupported) {
    return std::unexpected(configuration.error());
  }
  return info;
}

Result<std::vector<std::string>> GrpcClient::Extensions() {
  const auto server =
      Ask(&inference::GRPCInferenceService::Stub::ServerMetadata, inference::ServerMetadataRequest());
  if (!server && server.error().code == ErrorCode::kUnsupported) return std::vector<std::string>();
  const inference::ServerMetadataResponse metadata = TRY(server);
  return std::vector<std::string>(metadata.extensions().begin(), metadata.extensions().end());
}

infer::PhaseTotals::Phase ToPhase(const inference::StatisticDuration& duration) {
  return {.count = duration.count(), .total = Duration(static_cast<int64_t>(duration.ns()))};
}

Result<infer::PhaseTotals> GrpcClient::Statistics(const std::string& model, const std::string& version) {
  inference::ModelStatisticsRequest question;
  question.set_name(model);
  question.set_version(version);
  infer::PhaseTotals sum;
  const auto statistics = TRY(Ask(&inference::GRPCInferenceService::Stub::ModelStatistics, question));
  for (const auto& entry : statistics.model_stats()) {
    const auto& phases = entry.inference_stats();
    sum += {.rows = entry.inference_count(),
            .batches = entry.execution_count(),
            .success = ToPhase(phases.success()),
            .fail = ToPhase(phases.fail()),
            .queue = ToPhase(phases.queue()),
            .compute_input = ToPhase(phases.compute_input()),
            .compute_infer = ToPhase(phases.compute_infer()),
            .compute_output = ToPhase(phases.compute_output())};
  }
  return sum;
}

Result<http::ServerUrl> ParseGrpcUrl(const std::string& url) {
  http::ServerUrl server = TRY(http::ParseServerUrl(url));
  if (server.scheme != "grpc") return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: not grpc://", url));
  return server;
}

// The library's search for circles among its own locks costs every call; its log is not ours to print.
Result<std::vector<http::RequestHeader>> PrepareLibrary(const http::ClientOptions& options) {
  TRY_STATUS(http::CheckOptions(options));
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_function([](gpr_log_func_args*) {});
  return http::ParseRequestHeaders(options.headers);
}

}  // namespace

Result<std::vector<std::unique_ptr<infer::Endpoint>>> MakeGrpcClients(const std::vector<std::string>& urls,
                                                                      const http::ClientOptions& options,
                                                                      const Clock& clock) {
  const std::vector<http::RequestHeader> metadata = TRY(PrepareLibrary(options));
  GrpcClient::Lanes driven;  // one set for all, so that one thread drives all
  if (options.threads == 0) driven = GrpcClient::MakeLanes(options, clock);
  std::vector<std::unique_ptr<infer::Endpoint>> clients;
  for (const std::string& url : urls) {
    const http::ServerUrl server = TRY(ParseGrpcUrl(url));
    const Way way{.address = server.Address(), .target = TargetOf(server)};
    clients.push_back(std::make_unique<GrpcClient>(
        way, options, options.threads == 0 ? driven : GrpcClient::MakeLanes(options, clock), metadata,
        clock));
  }
  return clients;
}

Result<std::unique_ptr<infer::Endpoint>> MakeGrpcRoundRobin(const std::vector<std::string>& urls,
                                                            const http::ClientOptions& options,
                                                            const Clock& clock) {
  Way way{.address = {}, .target = {}, .round_robin = true};
  for (const std::string& url : urls) {
    const http::ServerUrl server = TRY(ParseGrpcUrl(url));
    const std::string target = TargetOf(server);
    if (way.target.empty()) {
      way.target = target;
    } else if (target.starts_with("dns:") || target.substr(0, 5) != way.target.substr(0, 5)) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: the gRPC library balances over addresses of one kind, or over all that one "
                      "name stands for: give addresses, or choose another policy",
                      url));
    } else {
      way.target += "," + target.substr(5);
    }
    way.address += (way.address.empty() ? "" : ",") + server.Address();
  }
  std::vector<http::RequestHeader> metadata = TRY(PrepareLibrary(options));
  return std::make_unique<GrpcClient>(way, options, GrpcClient::MakeLanes(options, clock),
                                      std::move(metadata), clock);
}

}  // namespace weir::oip
