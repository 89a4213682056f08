// grpc.health.v1.Health/Watch: told at once, and of every change.
#include <optional>
#include <utility>

#include "oip/grpc/methods.h"
#include "oip/grpc/queue.h"
#include "oip/repository_rules.h"

namespace weir::oip {
namespace {

// One client that watches the health. Events come on the queue's thread; TellHealth is called on any.
class HealthWatch final : public GrpcCall {
 public:
  explicit HealthWatch(GrpcQueue& queue)
      : GrpcCall(GrpcMethodTable::kWatch), queue_(queue), shared_(queue.shared) {}
  void Ask() override;
  void TellHealth() override;

 private:
  void OnStarted(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool) { Settle(); }
  void OnDone(bool ok);
  void Settle();  // an event has been taken

  GrpcQueue& queue_;
  GrpcShared& shared_;
  GrpcEvent started_ = On<&HealthWatch::OnStarted>(this);
  GrpcEvent written_ = On<&HealthWatch::OnWritten>(this);
  GrpcEvent finished_ = On<&HealthWatch::OnFinished>(this);
  GrpcEvent done_ = On<&HealthWatch::OnDone>(this);

  grpc::ServerContext context_;
  grpc::ByteBuffer message_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  std::optional<GrpcOpenCall> open_call_;
  Status size_;  // constant once the watch has begun, as the next
  std::string request_;

  Mutex mutex_;
  std::optional<std::string> told_ GUARDED_BY(mutex_);
  int awaited_ GUARDED_BY(mutex_) = 0;  // events
  bool begun_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;  // the client has left, or the last word is on its way
};

void HealthWatch::Ask() {
  context_.AsyncNotifyWhenDone(&done_);
  grpc::ServerCompletionQueue* const library = queue_.library.get();
  shared_.methods.RequestAsyncServerStreaming(method, &context_, &message_, &writer_, library, library,
                                              &started_);
}

void HealthWatch::OnStarted(bool ok) {
  if (!ok) return;  // the server closes
  queue_.Ask(method);
  open_call_.emplace(shared_, context_, GrpcOpenCall::Kind::kOneMessage);
  open_call_->CountMessage(message_);
  std::vector<grpc::Slice> slices;
  size_ = CheckControlSize(message_.Length());
  if (size_ && message_.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      request_.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  message_.Clear();
  {
    MutexLock lock(mutex_);
    begun_ = true;
    awaited_ = 1;  // OnDone
  }
  TellHealth();
}

// Called regularly and after every message, so the last message has the health as it is.
void HealthWatch::TellHealth() {
  const GrpcGate::Pass pass(*shared_.gate);
  if (!pass) return;
  {
    MutexLock lock(mutex_);
    if (!begun_ || writing_ || ended_) return;
  }
  Result<std::string> health = size_ ? WatchHealth(shared_.api, request_)
                                     : std::unexpected(Context("the message", size_.error()).error());
  {
    MutexLock lock(mutex_);
    if (writing_ || ended_ || (health && told_ == *health)) return;
    ++awaited_;
    if (health) {
      told_ = *health;
      writing_ = true;
    } else {
      ended_ = true;
    }
  }
  if (health) return writer_.Write(ToGrpc(*health), &written_);
  writer_.Finish(ToGrpc(health.error(), shared_.options.compat), &finished_);
}

void HealthWatch::OnWritten(bool) {
  {
    MutexLock lock(mutex_);
    writing_ = false;
  }
  TellHealth();
  Settle();
}

void HealthWatch::OnDone(bool) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  Settle();
}

void HealthWatch::Settle() {
  {
    MutexLock lock(mutex_);
    if (--awaited_ > 0) return;
  }
  queue_.Drop(*this);
}

}  // namespace

std::unique_ptr<GrpcCall> MakeGrpcWatch(GrpcQueue& queue) { return std::make_unique<HealthWatch>(queue); }

}  // namespace weir::oip
