#include "object/client.h"

#include <utility>

#include "base/thread.h"

namespace weir::object {

Client::Client(std::unique_ptr<Transport> transport, std::unique_ptr<RequestBuilder> builder,
               const Clock& clock, RequestLoop::Options options, std::function<Status()> before)
    : transport_(std::move(transport)),
      builder_(std::move(builder)),
      before_(std::move(before)),
      loop_(*transport_, *builder_, clock, options) {
  thread_ = StartThread("object", [this](const std::stop_token& stop) { Work(stop); });
}

Client::~Client() {
  thread_.request_stop();
  transport_->Wake();
  thread_.join();
}

void Client::Submit(Operation operation) {
  if (before_) {
    if (Status ready = before_(); !ready) return operation.done(std::unexpected(ready.error()));
  }
  {
    MutexLock lock(mutex_);
    if (!ended_) {
      inbox_.push_back(std::move(operation));
      // The thread itself looks into the inbox after each response, before it waits.
      if (std::this_thread::get_id() != thread_.get_id()) transport_->Wake();
      return;
    }
  }
  operation.done(Fail(ErrorCode::kCancelled, "stopped"));
}

Result<Response> Client::Do(Operation operation, const std::stop_token& stop) {
  struct Shared {
    Mutex mutex;
    CondVar changed;
    std::optional<Result<Response>> result GUARDED_BY(mutex);
  };
  // Outlives this call if `stop` ends it.
  const auto shared = std::make_shared<Shared>();
  operation.done = [shared](Result<Response> result) {
    MutexLock lock(shared->mutex);
    shared->result = std::move(result);
    shared->changed.NotifyAll();
  };
  Submit(std::move(operation));
  const std::stop_callback wake(stop, [&shared] {
    MutexLock lock(shared->mutex);
    shared->changed.NotifyAll();
  });
  MutexLock lock(shared->mutex);
  while (!shared->result && !stop.stop_requested()) shared->changed.Wait(shared->mutex);
  if (!shared->result) return Fail(ErrorCode::kCancelled, "stopped");
  return *std::move(shared->result);
}

RequestCounts Client::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

void Client::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<Operation> come;
    {
      MutexLock lock(mutex_);
      come.swap(inbox_);
      counts_ = loop_.counts();
    }
    for (Operation& operation : come) loop_.Submit(std::move(operation));
    transport_->Drive(loop_.Step());
  }
  std::vector<Operation> left;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    left.swap(inbox_);
  }
  for (Operation& operation : left) loop_.Submit(std::move(operation));
  loop_.CancelAll();
}

}  // namespace weir::object
