// ModelStreamInfer: inferences that know nothing of one another, answered as they are done.
#include <deque>
#include <optional>
#include <utility>

#include "oip/grpc/bytes.h"
#include "oip/grpc/methods.h"
#include "oip/grpc/queue.h"

namespace weir::oip {
namespace {

constexpr int kOpenInStream = 64;  // requests of one stream under way; the next is not read

// Answers come on any thread, the rest on the queue's.
class InferStream final : public GrpcCall {
 public:
  explicit InferStream(GrpcQueue& queue)
      : GrpcCall(GrpcMethodTable::kStream), queue_(queue), shared_(queue.shared) {}
  void Ask() override;
  void Drain() override { Go(); }

 private:
  struct Outgoing {
    grpc::ByteBuffer message;
    RequestTrace exchange;
    std::optional<http::ByteBudget::Share> share;  // of the budget
  };
  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool) { Settle(); }
  void OnDone(bool ok);
  void Infer();
  void Answer(GrpcInference inference, Result<infer::Response> result, const infer::Times& times);
  // Starts whatever can be: the next write, the next read, the end. After it the stream may be gone, but on
  // the queue's thread.
  void Go();
  void Settle();  // an event has been taken

  GrpcQueue& queue_;
  GrpcShared& shared_;
  GrpcEvent started_ = On<&InferStream::OnStarted>(this);
  GrpcEvent read_ = On<&InferStream::OnRead>(this);
  GrpcEvent written_ = On<&InferStream::OnWritten>(this);
  GrpcEvent finished_ = On<&InferStream::OnFinished>(this);
  GrpcEvent done_ = On<&InferStream::OnDone>(this);

  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  grpc::ByteBuffer incoming_;
  std::optional<GrpcOpenCall> open_call_;
  std::stop_source left_;

  Mutex mutex_;
  std::deque<Outgoing> outgoing_ GUARDED_BY(mutex_);  // the first may be on its way
  int open_ GUARDED_BY(mutex_) = 0;                   // requests whose answer is not written
  int awaited_ GUARDED_BY(mutex_) = 0;                // events
  bool begun_ GUARDED_BY(mutex_) = false;
  bool reading_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool input_ended_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
};

void InferStream::Ask() {
  context_.AsyncNotifyWhenDone(&done_);
  grpc::ServerCompletionQueue* const library = queue_.library.get();
  shared_.methods.RequestAsyncBidiStreaming(method, &context_, &stream_, library, library, &started_);
}

void InferStream::OnStarted(bool ok) {
  if (!ok) return;  // the server closes
  queue_.Ask(method);
  shared_.in_flight.Add();
  open_call_.emplace(shared_, context_, GrpcOpenCall::Kind::kStream);
  {
    MutexLock lock(mutex_);
    begun_ = true;
    awaited_ = 1;  // OnDone
  }
  Go();
}

void InferStream::Go() {
  const std::shared_ptr<GrpcGate> gate = shared_.gate;
  const GrpcGate::Pass pass(*gate);
  if (!pass) return;
  const grpc::ByteBuffer* write = nullptr;
  bool read = false, end = false;
  const bool draining = shared_.in_flight.draining();
  {
    MutexLock lock(mutex_);
    if (!begun_ || ending_) return;
    if (!writing_ && !outgoing_.empty()) write = &outgoing_.front().message;
    read = !reading_ && !input_ended_ && !draining && open_ < kOpenInStream;
    end = open_ == 0 && (input_ended_ || draining);
    writing_ |= write != nullptr;
    reading_ |= read;
    ending_ = end;
    awaited_ += (write != nullptr) + read + end;
  }
  if (write) stream_.Write(*write, &written_);
  if (read) stream_.Read(&incoming_, &read_);
  if (!end) return;
  const Error stopping{ErrorCode::kOverloaded, "the server is stopping"};
  stream_.Finish(draining ? ToGrpc(stopping, shared_.options.compat) : grpc::Status::OK, &finished_);
}

void InferStream::OnRead(bool ok) {
  if (ok) {
    open_call_->CountMessage(incoming_);
    Infer();
  }
  {
    MutexLock lock(mutex_);
    reading_ = false;
    input_ended_ |= !ok;
  }
  Go();
  Settle();
}

void InferStream::Infer() {
  {
    MutexLock lock(mutex_);
    ++open_;
  }
  GrpcInference inference;
  Result<InferRequest> request = inference.Read(shared_, context_, incoming_, left_.get_token());
  incoming_.Clear();
  infer::Completion completion([this, gate = shared_.gate, inference = std::move(inference)](
                                   Result<infer::Response> result, const infer::Times& times) mutable {
    const GrpcGate::Pass pass(*gate);
    if (pass) Answer(std::move(inference), std::move(result), times);
  });
  if (!request) return completion.Answer(std::unexpected(std::move(request).error()), {});
  shared_.api.Infer(*std::move(request), std::move(completion));
}

void InferStream::Answer(GrpcInference inference, Result<infer::Response> result, const infer::Times& times) {
  const Result<Slices> message = inference.Write(shared_, std::move(result), times);
  Outgoing outgoing;
  if (message) {
    size_t size = 0;
    for (const Bytes& piece : *message) size += piece.size();
    Slices whole = {Bytes::Copy(WriteStreamPrefix(size))};
    whole.insert(whole.end(), message->begin(), message->end());
    outgoing.message = ToGrpc(whole);
  } else {
    outgoing.message = ToGrpc(WriteStreamError(inference.id, message.error()));
  }
  outgoing.exchange = std::move(inference.exchange);
  if (inference.answer) outgoing.share.emplace(std::move(*inference.answer));
  {
    MutexLock lock(mutex_);
    outgoing_.push_back(std::move(outgoing));
  }
  Go();
}

void InferStream::OnWritten(bool ok) {
  std::deque<Outgoing> gone;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    gone.push_back(std::move(outgoing_.front()));
    outgoing_.pop_front();
    if (!ok) {  // nobody takes the others either
      std::move(outgoing_.begin(), outgoing_.end(), std::back_inserter(gone));
      outgoing_.clear();
      input_ended_ = true;
    }
    open_ -= static_cast<int>(gone.size());
  }
  const Instant now = shared_.clock.Now();
  for (Outgoing& each : gone) {
    each.exchange.sent = now;
    shared_.api.Observe(each.exchange);
  }
  Go();
  Settle();
}

void InferStream::OnDone(bool) {
  if (context_.IsCancelled()) left_.request_stop();
  Settle();
}

void InferStream::Settle() {
  {
    MutexLock lock(mutex_);
    if (--awaited_ > 0 || !ending_) return;
  }
  shared_.in_flight.Remove();
  queue_.Drop(*this);
}

}  // namespace

std::unique_ptr<GrpcCall> MakeGrpcStream(GrpcQueue& queue) { return std::make_unique<InferStream>(queue); }

}  // namespace weir::oip
