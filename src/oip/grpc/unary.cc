// Calls of methods with one request and one answer.
#include <optional>
#include <utility>

#include "oip/grpc/bytes.h"
#include "oip/grpc/methods.h"
#include "oip/grpc/queue.h"
#include "oip/repository_rules.h"

namespace weir::oip {
namespace {

struct Rpc {
  grpc::ServerContext context;
  grpc::ByteBuffer message;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer{&context};
};

// From waiting for a call to its answer's last byte; then it waits again. On the queue's thread, but for the
// answer, which comes on any. Once that is handed to the library, the call may be in use again.
class UnaryCall final : public GrpcCall {
 public:
  UnaryCall(GrpcQueue& queue, int method) : GrpcCall(method), queue_(queue), shared_(queue.shared) {}
  void Ask() override;

 private:
  void OnStarted(bool ok);
  void OnSent(bool ok);
  void OnDone(bool ok);
  void Infer();
  void Serve();
  void Finish(const Result<grpc::ByteBuffer>& answer);
  void Settle();

  GrpcQueue& queue_;
  GrpcShared& shared_;
  GrpcEvent started_ = On<&UnaryCall::OnStarted>(this);
  GrpcEvent sent_ = On<&UnaryCall::OnSent>(this);
  GrpcEvent done_ = On<&UnaryCall::OnDone>(this);

  std::optional<Rpc> rpc_;
  std::optional<GrpcOpenCall> open_;
  std::stop_source left_{std::nostopstate};
  GrpcInference inference_;
  int awaited_ = 0;  // events
};

void UnaryCall::Ask() {
  rpc_.emplace();
  rpc_->context.AsyncNotifyWhenDone(&done_);
  grpc::ServerCompletionQueue* const library = queue_.library.get();
  shared_.methods.RequestAsyncUnary(method, &rpc_->context, &rpc_->message, &rpc_->writer, library, library,
                                    &started_);
}

void UnaryCall::OnStarted(bool ok) {
  if (!ok) return;  // the server closes
  queue_.Ask(method);
  shared_.in_flight.Add();
  awaited_ = 2;
  open_.emplace(shared_, rpc_->context, GrpcOpenCall::Kind::kOneMessage);
  open_->CountMessage(rpc_->message);
  if (method == GrpcMethodTable::kInfer) return Infer();
  Serve();
}

void UnaryCall::Infer() {
  left_ = std::stop_source();
  Result<InferRequest> request = inference_.Read(shared_, rpc_->context, rpc_->message, left_.get_token());
  rpc_->message.Clear();
  infer::Completion completion(
      [this, gate = shared_.gate](Result<infer::Response> result, const infer::Times& times) {
        const GrpcGate::Pass pass(*gate);
        if (!pass) return;
        const Result<Slices> message = inference_.Write(shared_, std::move(result), times);
        if (!message) return Finish(std::unexpected(message.error()));
        Finish(ToGrpc(*message));
      });
  if (!request) return completion.Answer(std::unexpected(std::move(request).error()), {});
  shared_.api.Infer(*std::move(request), std::move(completion));
}

void UnaryCall::Serve() {
  if (const Status size = CheckControlSize(rpc_->message.Length()); !size)
    return Finish(Context("the message", size.error()));
  std::vector<grpc::Slice> slices;
  std::string message;
  if (!rpc_->message.Dump(&slices).ok()) {
    return Finish(Fail(ErrorCode::kInternal, "the message cannot be read"));
  }
  for (const grpc::Slice& slice : slices)
    message.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  const GrpcMethod& called = GrpcMethods()[static_cast<size_t>(method - GrpcMethodTable::kOthers)];
  const GrpcServing serving{.api = shared_.api,
                            .allow_regions = shared_.options.allow_regions,
                            .tells_labels = rpc_->context.client_metadata().contains(kLabelsHeader),
                            .compat = shared_.options.compat};
  called.serve(serving, message, [this, gate = shared_.gate](Result<std::string> answer) {
    const GrpcGate::Pass pass(*gate);
    if (!pass) return;
    if (!answer) return Finish(std::unexpected(std::move(answer).error()));
    Finish(ToGrpc(*answer));
  });
}

void UnaryCall::Finish(const Result<grpc::ByteBuffer>& answer) {
  if (answer) return rpc_->writer.Finish(*answer, grpc::Status::OK, &sent_);
  rpc_->writer.FinishWithError(ToGrpc(answer.error(), shared_.options.compat), &sent_);
}

void UnaryCall::OnSent(bool) {
  if (method == GrpcMethodTable::kInfer) {
    inference_.answer.reset();
    inference_.exchange.sent = shared_.clock.Now();
    shared_.api.Observe(inference_.exchange);
  }
  shared_.in_flight.Remove();
  Settle();
}

void UnaryCall::OnDone(bool) {
  if (method == GrpcMethodTable::kInfer && rpc_->context.IsCancelled()) left_.request_stop();
  Settle();
}

void UnaryCall::Settle() {
  if (--awaited_ > 0) return;
  rpc_.reset();
  open_.reset();
  queue_.Reuse(*this);
}

}  // namespace

std::unique_ptr<GrpcCall> MakeGrpcUnary(GrpcQueue& queue, int method) {
  return std::make_unique<UnaryCall>(queue, method);
}

}  // namespace weir::oip
