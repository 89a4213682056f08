#include "oip/grpc/queue.h"

#include <fmt/format.h>
#include <grpcpp/impl/rpc_service_method.h>

#include <utility>

#include "base/thread.h"
#include "http/error_body.h"
#include "oip/grpc/methods.h"
#include "oip/status.h"

namespace weir::oip {
namespace {

constexpr int kInferencesAsked = 8;     // of each queue beforehand; of the other methods one
constexpr auto kFarthest = 24h * 3650;  // deadlines beyond are as good as none

std::optional<Instant> DeadlineOf(const grpc::ServerContext& context, Instant now) {
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (std::chrono::seconds(left.tv_sec) > kFarthest) return std::nullopt;
  return now + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

// The message as slices that keep it, and its share of the budget, for as long as they are held.
Result<Slices> Receive(const GrpcShared& shared, const grpc::ServerContext& context,
                       const grpc::ByteBuffer& message) {
  struct Received {
    explicit Received(http::ByteBudget::Share taken) : share(std::move(taken)) {}
    http::ByteBudget::Share share;
    std::vector<grpc::Slice> slices;
  };
  auto share = shared.budget->Take(message.Length());
  if (!share) {
    if (shared.options.refused) shared.options.refused(GrpcRefusal::kMessage, context.peer());
    return Fail(ErrorCode::kOverloaded, "too many bytes of requests are in flight");
  }
  const auto received = std::make_shared<Received>(*std::move(share));
  if (!message.Dump(&received->slices).ok()) return Fail(ErrorCode::kInternal, "the message cannot be read");
  Slices pieces;
  pieces.reserve(received->slices.size());
  for (const grpc::Slice& slice : received->slices) {
    auto* const data = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(slice.begin()));
    pieces.push_back(Bytes::Wrap(received, data, slice.size()));
  }
  return pieces;
}

}  // namespace

GrpcMethodTable::GrpcMethodTable() {
  using grpc::internal::RpcMethod;
  const auto add = [this](const char* name, RpcMethod::RpcType type) {
    AddMethod(new grpc::internal::RpcServiceMethod(name, type, nullptr));
    MarkMethodRaw(size_++);
  };
  add(kModelInferName, RpcMethod::NORMAL_RPC);
  add(kModelStreamInferName, RpcMethod::BIDI_STREAMING);
  add(kHealthWatchName, RpcMethod::SERVER_STREAMING);
  for (const GrpcMethod& method : GrpcMethods()) add(method.name, RpcMethod::NORMAL_RPC);
}

void GrpcGate::Close() {
  closed_ = true;
  for (int inside = inside_; inside > 0; inside = inside_) inside_.wait(inside);
}

void GrpcInFlight::Remove() {
  if (count_.fetch_sub(1) > 1 || !draining_) return;
  MutexLock lock(mutex_);
  idle_.NotifyAll();
}

bool GrpcInFlight::WaitUntilIdle(Instant until) {
  MutexLock lock(mutex_);
  while (count_ > 0) {
    if (!idle_.WaitUntil(mutex_, until)) return count_ == 0;
  }
  return true;
}

GrpcShared::GrpcShared(OipGrpcServer::Options given, Api& a, const Clock& c)
    : options(std::move(given)),
      api(a),
      clock(c),
      budget(std::make_shared<http::ByteBudget>(options.max_bytes_in_flight)),
      gate(std::make_shared<GrpcGate>()) {}

GrpcOpenCall::GrpcOpenCall(const GrpcShared& shared, const grpc::ServerContext& context, Kind kind)
    : connection_(shared.acceptor->Find(context.peer())), kind_(kind) {
  if (!connection_) return;
  connection_->open_calls.fetch_add(1, std::memory_order_relaxed);
  connection_->streams->Started();
  if (kind_ == Kind::kStream) connection_->open_streams.fetch_add(1, std::memory_order_relaxed);
}

GrpcOpenCall::~GrpcOpenCall() {
  if (!connection_) return;
  connection_->open_calls.fetch_sub(1, std::memory_order_relaxed);
  if (kind_ == Kind::kStream) connection_->open_streams.fetch_sub(1, std::memory_order_relaxed);
}

void GrpcOpenCall::CountMessage(const grpc::ByteBuffer& message) {
  if (!connection_) return;
  connection_->messages.fetch_add(1, std::memory_order_relaxed);
  connection_->message_bytes.fetch_add(message.Length(), std::memory_order_relaxed);
}

grpc::Status ToGrpc(const Error& error, Compat compat) {
  return {static_cast<grpc::StatusCode>(GrpcStatus(error.code, compat)), http::ErrorText(error)};
}

grpc::ByteBuffer ToGrpc(const std::string& message) {
  const grpc::Slice slice(message);
  return {&slice, 1};
}

Result<InferRequest> GrpcInference::Read(const GrpcShared& shared, const grpc::ServerContext& context,
                                         const grpc::ByteBuffer& message, std::stop_token left) {
  const Instant now = shared.clock.Now();
  id.clear();
  exchange = {.protocol = Protocol::kGrpc, .first_byte = now, .received = now, .decoded = now};
  if (shared.in_flight.draining()) return Fail(ErrorCode::kOverloaded, "the server is stopping");
  const Slices pieces = TRY(Receive(shared, context, message));
  Result<InferRequest> parsed = ParseGrpcRequest(pieces);
  if (!parsed) {
    exchange.malformed = true;
    id = FindRequestId(pieces);
    return parsed;
  }
  InferRequest& request = *parsed;
  exchange.decoded = shared.clock.Now();
  exchange.model = request.request.model;
  exchange.version = request.request.version;
  outputs = request.outputs;
  id = request.request.id;
  request.protocol = Protocol::kGrpc;
  request.first_byte = exchange.first_byte;
  request.received = exchange.received;
  request.decoded = exchange.decoded;
  request.request.deadline = DeadlineOf(context, now);
  request.request.cancelled = std::move(left);
  return parsed;
}

Result<Slices> GrpcInference::Write(const GrpcShared& shared, Result<infer::Response> result,
                                    const infer::Times& times) {
  exchange.times = times;
  if (!result) {
    exchange.error = result.error().code;
    exchange.encoded = shared.clock.Now();
    return std::unexpected(std::move(result).error());
  }
  exchange.model = result->model;
  exchange.version = result->version;
  exchange.executed_batch = result->executed_batch;
  Slices message = WriteGrpcResponse(*result, outputs);
  size_t size = 0;
  for (const Bytes& piece : message) size += piece.size();
  answer.emplace(shared.budget->Charge(size));
  exchange.encoded = shared.clock.Now();
  return message;
}

GrpcQueue::GrpcQueue(GrpcShared& s, std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : shared(s), library(std::move(queue)) {}

GrpcQueue::~GrpcQueue() {
  library->Shutdown();
  if (!thread_.joinable()) Run();  // a queue must be empty before it goes
  if (thread_.joinable()) thread_.join();
}

void GrpcQueue::Run() {
  void* tag = nullptr;
  for (bool ok = false; library->Next(&tag, &ok);) {
    AnnotateAcquire();
    const auto* event = static_cast<const GrpcEvent*>(tag);
    event->happened(event->self, ok);
  }
}

void GrpcQueue::Start(int number) {
  for (int i = 1; i < kInferencesAsked; ++i) Ask(GrpcMethodTable::kInfer);
  for (int method = 0; method < shared.methods.size(); ++method) Ask(method);
  thread_ = StartThread(fmt::format("grpc-{}", number), [this](std::stop_token) { Run(); });
}

void GrpcQueue::Drain() {
  MutexLock lock(mutex_);
  for (const auto& call : calls_) call->Drain();
}

void GrpcQueue::TellHealth() {
  MutexLock lock(mutex_);
  for (const auto& call : calls_) call->TellHealth();
}

void GrpcQueue::Ask(int method) {
  const GrpcGate::Pass pass(*shared.gate);
  if (pass) Make(method).Ask();
}

GrpcCall& GrpcQueue::Make(int method) {
  for (size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i]->method != method) continue;
    GrpcCall& call = *idle_[i];
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    return call;
  }
  std::unique_ptr<GrpcCall> made = method == GrpcMethodTable::kStream  ? MakeGrpcStream(*this)
                                   : method == GrpcMethodTable::kWatch ? MakeGrpcWatch(*this)
                                                                       : MakeGrpcUnary(*this, method);
  GrpcCall& call = *made;
  MutexLock lock(mutex_);
  call.place = calls_.insert(calls_.end(), std::move(made));
  return call;
}

void GrpcQueue::Drop(GrpcCall& call) {
  MutexLock lock(mutex_);
  calls_.erase(call.place);
}

}  // namespace weir::oip
