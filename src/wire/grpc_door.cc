#include "wire/grpc_door.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <utility>
#include <vector>

#include "wire/grpc_queue.h"

namespace weir::wire {
namespace {

class Door final : public GrpcDoor {
 public:
  Door(Options options, Api& api, const Clock& clock) : shared_(std::move(options), api, clock) {}
  ~Door() override;

  Status Open();
  int port() const override { return port_; }
  void StopAccepting() override;
  bool WaitUntilIdle(Instant until) override { return shared_.in_flight.WaitUntilIdle(until); }

 private:
  GrpcShared shared_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::unique_ptr<GrpcQueue>> queues_;
  int port_ = 0;
};

Status Door::Open() {
  const Options& options = shared_.options;
  const bool is_ipv6 = options.address.find(':') != std::string::npos;
  const std::string address =
      fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", options.address, is_ipv6 ? "]" : "", options.port);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&shared_.methods);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<size_t>(options.max_message, INT32_MAX)));
  builder.SetMaxSendMessageSize(-1);
  // A second server on this port is an error, not a partner.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  // The library unpacks a message before it holds its size against the limit.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  for (int i = 0; i < options.threads; ++i) {
    queues_.push_back(std::make_unique<GrpcQueue>(shared_, builder.AddCompletionQueue()));
  }
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0) {
    return Fail(ErrorCode::kIo, fmt::format("listen on {} for gRPC: the address cannot be had", address));
  }
  for (size_t i = 0; i < queues_.size(); ++i) queues_[i]->Start(static_cast<int>(i));
  return {};
}

void Door::StopAccepting() {
  shared_.in_flight.Drain();
  for (const auto& queue : queues_) queue->Drain();
}

// The order is the library's: the server ends its calls, then nothing more is asked of the queues, then they
// are emptied.
Door::~Door() {
  if (server_) server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
  shared_.gate->Close();
  queues_.clear();
}

}  // namespace

Result<std::unique_ptr<GrpcDoor>> GrpcDoor::Create(Options options, Api& api, const Clock& clock) {
  if (options.threads < 1) return Fail(ErrorCode::kInvalidArgument, "gRPC needs at least one thread");
  // A debugging aid of the library's locks, which some builds of it leave on: a tenth of a small call.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  gpr_set_log_function([](gpr_log_func_args*) {});  // what matters comes back as an error
  google::protobuf::SetLogHandler(nullptr);         // a client's bad text would block on standard error
  auto door = std::make_unique<Door>(std::move(options), api, clock);
  TRY_STATUS(door->Open());
  return door;
}

}  // namespace weir::wire
