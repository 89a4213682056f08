// Runs calls on a Session: the Service of this process.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "infer/engine.h"
#include "infer/service.h"

namespace weir::infer {

// A bounded queue and `workers` threads named "engine-N", each running one call at a time. A full queue
// answers kOverloaded at once. Calls are computed in the order of their arrival. A call whose deadline has
// passed when its turn comes is answered kDeadline and not computed. The destructor refuses new calls
// (kCancelled), finishes what is queued, and joins; a Completion must not run it.
class Runner final : public Service {
 public:
  struct Options {
    int workers = 0;      // 0: session.callers()
    int max_queue = 256;  // calls waiting, beside one for each worker
  };
  // `clock` must outlive the Runner. kInvalidArgument names the bad option.
  static Result<std::unique_ptr<Runner>> Create(std::shared_ptr<Session> session, const Clock& clock,
                                                Options options);
  ~Runner() override;

  void Submit(Call call) override;

 private:
  Runner(std::shared_ptr<Session> session, const Clock& clock, Options options);
  std::optional<Error> Enqueue(Call& call);  // takes the call, or says why not and leaves it
  std::optional<Call> Take();                // the next call; nothing once all is drained
  Result<Response> Compute(Call& call);
  void Work();

  const std::shared_ptr<Session> session_;
  const Clock& clock_;
  const Options options_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Call> queue_ GUARDED_BY(mutex_);
  int idle_ GUARDED_BY(mutex_);  // workers that compute nothing
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::vector<std::jthread> workers_;
};

}  // namespace weir::infer
