// grpc.health.v1.Health/Watch: told at once, and of every change.
#include <grpcpp/alarm.h>

#include <optional>
#include <utility>

#include "wire/grpc_methods.h"
#include "wire/grpc_queue.h"

namespace weir::wire {
namespace {

constexpr int64_t kLookEveryMs = 500;

// On the queue's thread.
class HealthWatch final : public GrpcCall {
 public:
  explicit HealthWatch(GrpcQueue& queue)
      : GrpcCall(GrpcMethodTable::kWatch), queue_(queue), shared_(queue.shared) {}
  void Ask() override;

 private:
  void OnStarted(bool ok);
  void OnAlarm(bool) { Look(); }
  void OnWritten(bool) { Wait(); }
  void OnFinished(bool) { Settle(); }
  void OnDone(bool ok);
  void Look();  // each of these takes an event and starts what comes next
  void Wait();
  void Settle();

  GrpcQueue& queue_;
  GrpcShared& shared_;
  GrpcEvent started_ = On<&HealthWatch::OnStarted>(this);
  GrpcEvent alarmed_ = On<&HealthWatch::OnAlarm>(this);
  GrpcEvent written_ = On<&HealthWatch::OnWritten>(this);
  GrpcEvent finished_ = On<&HealthWatch::OnFinished>(this);
  GrpcEvent done_ = On<&HealthWatch::OnDone>(this);

  grpc::ServerContext context_;
  grpc::ByteBuffer message_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  grpc::Alarm alarm_;
  std::string request_;
  std::optional<std::string> told_;
  bool left_ = false;
  int awaited_ = 2;  // OnDone, and one of the others
};

void HealthWatch::Ask() {
  context_.AsyncNotifyWhenDone(&done_);
  grpc::ServerCompletionQueue* const library = queue_.library.get();
  shared_.methods.RequestAsyncServerStreaming(method, &context_, &message_, &writer_, library, library,
                                              &started_);
}

void HealthWatch::OnStarted(bool ok) {
  if (!ok) return;  // the door closes
  queue_.Ask(method);
  std::vector<grpc::Slice> slices;
  if (message_.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      request_.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  Look();
}

void HealthWatch::Look() {
  const GrpcGate::Pass pass(*shared_.gate);
  if (!pass) return;
  if (left_) return Settle();
  Result<std::string> health = WatchHealth(shared_.api, request_);
  if (!health) return writer_.Finish(ToGrpc(health.error(), shared_.options.compat), &finished_);
  if (told_ && *health == *told_) return Wait();
  told_ = *std::move(health);
  writer_.Write(ToGrpc(*told_), &written_);
}

void HealthWatch::Wait() {
  const GrpcGate::Pass pass(*shared_.gate);
  if (!pass) return;
  if (left_) return Settle();
  alarm_.Set(queue_.library.get(), gpr_time_from_millis(kLookEveryMs, GPR_TIMESPAN), &alarmed_);
}

void HealthWatch::OnDone(bool) {
  left_ = true;
  alarm_.Cancel();
  Settle();
}

void HealthWatch::Settle() {
  if (--awaited_ == 0) queue_.Drop(*this);
}

}  // namespace

std::unique_ptr<GrpcCall> MakeGrpcWatch(GrpcQueue& queue) { return std::make_unique<HealthWatch>(queue); }

}  // namespace weir::wire
