#include "oip/grpc/server.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/resource_quota.h>
#include <malloc.h>

#include <utility>
#include <vector>

#include "http/memory_release.h"
#include "oip/grpc/queue.h"

namespace weir::oip {
namespace {

// Memory of the library beside messages: connections, calls, headers.
constexpr size_t kLibraryBytes = size_t{16} << 20;
constexpr int kHandshakeTimeoutMs = 10'000;  // to the end of the client's first SETTINGS

class OipGrpcServerImpl final : public OipGrpcServer {
 public:
  OipGrpcServerImpl(Options options, Api& api, const Clock& clock)
      : shared_(std::move(options), api, clock) {}
  ~OipGrpcServerImpl() override;

  Status Open();
  int port() const override { return shared_.acceptor->port(); }
  void StopAccepting() override;
  bool WaitUntilIdle(Instant until) override { return shared_.in_flight.WaitUntilIdle(until); }

 private:
  bool Tick(const GrpcAcceptor::Load& load);

  GrpcShared shared_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::unique_ptr<GrpcQueue>> queues_;

  // On the acceptor's thread.
  http::MemoryRelease release_;
};

Status OipGrpcServerImpl::Open() {
  const Options& options = shared_.options;
  shared_.acceptor =
      TRY(GrpcAcceptor::Listen({.address = options.address,
                                .port = options.port,
                                .admission = {.max_connections = options.max_connections,
                                              .max_per_address = options.max_connections_per_address,
                                              .max_bytes = options.max_bytes_in_flight,
                                              .message_timeout = options.message_timeout},
                                .refused =
                                    [this](GrpcRefusal reason, const std::string& who) {
                                      if (shared_.options.refused) shared_.options.refused(reason, who);
                                    },
                                .tick = [this](const GrpcAcceptor::Load& load) { return Tick(load); }},
                               shared_.clock));
  grpc::ServerBuilder builder;
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.RegisterService(&shared_.methods);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<size_t>(options.max_message, INT32_MAX)));
  builder.SetMaxSendMessageSize(-1);
  // The last resort: it resets a call at random. The acceptor closes those who hold most before.
  grpc::ResourceQuota quota("weir");
  quota.Resize(options.max_bytes_in_flight + kLibraryBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);  // it counts every call
  // The library unpacks a message before it holds its size against the limit.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  for (int i = 0; i < options.threads; ++i) {
    queues_.push_back(std::make_unique<GrpcQueue>(shared_, builder.AddCompletionQueue()));
  }
  server_ = builder.BuildAndStart();
  if (!server_) return Fail(ErrorCode::kIo, "the gRPC library cannot start a server");
  for (size_t i = 0; i < queues_.size(); ++i) queues_[i]->Start(static_cast<int>(i));
  shared_.acceptor->Start(std::move(acceptor));
  return {};
}

bool OipGrpcServerImpl::Tick(const GrpcAcceptor::Load& load) {
  // A watcher compares the health with its own last message. A comparison with the last tick would miss a
  // health that changed twice in between.
  for (const auto& queue : queues_) queue->TellHealth();
  const Instant now = shared_.clock.Now();
  if (release_.IsDue(load.unfinished_bytes + shared_.budget->used(), load.received_bytes, now))
    malloc_trim(0);
  return release_.pending();
}

void OipGrpcServerImpl::StopAccepting() {
  shared_.in_flight.Drain();
  for (const auto& queue : queues_) queue->Drain();
}

// The order is the library's: no connection is handed over to a server that has shut down, the server ends
// its calls, then nothing more is asked of the queues, then they are emptied.
OipGrpcServerImpl::~OipGrpcServerImpl() {
  if (shared_.acceptor) shared_.acceptor->Stop();
  if (server_) server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
  shared_.gate->Close();
  queues_.clear();
}

}  // namespace

Result<std::unique_ptr<OipGrpcServer>> OipGrpcServer::Create(Options options, Api& api, const Clock& clock) {
  if (options.threads < 1) return Fail(ErrorCode::kInvalidArgument, "gRPC needs at least one thread");
  // A debugging aid of the library's locks, which some builds of it leave on: a tenth of a small call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_function([](gpr_log_func_args*) {});  // what matters comes back as an error
  google::protobuf::SetLogHandler(nullptr);         // a client's bad text would block on standard error
  auto server = std::make_unique<OipGrpcServerImpl>(std::move(options), api, clock);
  TRY_STATUS(server->Open());
  return server;
}

}  // namespace weir::oip
