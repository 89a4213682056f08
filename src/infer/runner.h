// Runs calls on a Session: the Service of this process.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "infer/batch_time.h"
#include "infer/batcher.h"
#include "infer/engine.h"
#include "infer/hang.h"
#include "infer/service.h"

namespace weir::infer {

// One queue, a Batcher, in front of a Session, and at most `workers` batches in the Session at a time: each
// run by a thread of its own, "engine-N", or, where the session is asynchronous, begun by whoever submits a
// call or ends a batch. A full queue answers kOverloaded at once. A call that expires while it waits is
// answered kDeadline within a millisecond, whatever the engine does. One that was cancelled is answered
// kCancelled when its turn comes. Neither is computed.
//
// Where the session takes more batches than it computes at a time, so that the next is there when one ends, a
// batch that others could still join leaves only when that end may come.
//
// A call that is computed alone reaches the Session as it came, and its answer leaves as the Session gave it;
// several are joined with one copy, and their answers are slices of the batch's. When a batch of several
// fails, each of its calls is computed again alone, so that it gets an answer of its own.
//
// The destructor refuses new calls (kCancelled), finishes what is queued, and joins; a Completion must not
// run it, and no Submit may be under way in another thread.
class Runner final : public Service {
 public:
  struct Options {
    int workers = 0;      // batches at a time; 0: session.callers()
    int max_queue = 256;  // calls waiting, over all priorities, beside one for each idle worker
    Batching batching;    // by default every call is computed alone, in the order of their arrival
  };
  // `clock` must outlive the Runner. kInvalidArgument names the bad option.
  static Result<std::unique_ptr<Runner>> Create(std::shared_ptr<Session> session, const Clock& clock,
                                                Options options);
  ~Runner() override;

  void Submit(Call call) override;

  struct Load {
    int queued_calls = 0;
    int64_t queued_rows = 0;  // each call counts 1 where rows are not counted
    int in_flight = 0;        // batches in the Session
    // The least that one of the last batches took, from leaving the queue to its answer; nothing until eight
    // have been computed, and when the last one ended more than a second ago.
    std::optional<Duration> batch_time;
  };
  // As of now; cheap.
  Load load() const;
  // Returns the batch that has run longest, if it hangs.
  std::optional<Hang> hang(Instant now) const;

 private:
  // The next work, done outside of the lock.
  struct Taken {
    std::optional<Batch> batch;
    std::vector<Batcher::Refused> refused;
    std::optional<Instant> ask_again;  // when a batch will have waited long enough

    bool empty() const { return !batch && refused.empty(); }
  };

  // A batch that the session has.
  struct UnderWay {
    Instant since;
    size_t bytes = 0;  // of its inputs
  };

  Runner(std::shared_ptr<Session> session, const Clock& clock, const Options& options, Batcher batcher);
  void StartThreads(bool waits);
  Status Offer(Call& call);
  EngineLoad LoadAt(Instant now) const REQUIRES(mutex_);
  std::optional<Instant> BusyUntil(std::optional<Duration> batch_time) const REQUIRES(mutex_);
  Taken TakeNext() REQUIRES(mutex_);
  UnderWay EndUnderWay(const Batch& batch) REQUIRES(mutex_);
  bool Drained() const REQUIRES(mutex_);

  Result<std::vector<Tensor>> InputsOf(Batch& batch);
  void Complete(Batch batch, Result<RunResult> result);
  void GiveBack(Batch batch);  // its place, and its calls to be computed alone

  // The body of the threads of a blocking session.
  void Work();
  std::optional<Taken> WaitForNext();  // nothing once all is drained
  Result<RunResult> Run(Batch& batch);

  // For asynchronous sessions: called by each thread that submits a call or ends a batch.
  void Pump();
  void Start(Batch batch);
  void Ended(Batch batch, Result<RunResult> result);
  void WatchWaits();  // the thread that pumps when a batch has waited long enough
  bool SleepUntilAsked();
  void Drain();

  // Calls that expire while no place is idle: the thread "expiry", which the first call that can expire
  // starts.
  void WatchForExpiry() REQUIRES(mutex_);
  void RefuseExpired();
  bool SleepUntilExpiry();

  const std::shared_ptr<Session> session_;
  const Clock& clock_;
  const bool asynchronous_;
  const int workers_;
  const bool gathers_;  // part batches wait while all streams of the session compute

  mutable Mutex mutex_;
  CondVar changed_;
  Batcher batcher_ GUARDED_BY(mutex_);
  std::deque<Batch> alone_ GUARDED_BY(mutex_);  // calls of batches that failed, before all others
  BatchTime batch_time_ GUARDED_BY(mutex_);
  ExpectedTime expected_time_ GUARDED_BY(mutex_);
  std::vector<UnderWay> under_way_ GUARDED_BY(mutex_);
  Instant computing_since_ GUARDED_BY(mutex_){};  // when a stream of the session last got its next batch
  int idle_ GUARDED_BY(mutex_);                   // places with nothing in the session
  int unfinished_ GUARDED_BY(mutex_) = 0;  // batches begun and not yet answered, of an asynchronous session
  std::optional<Instant> ask_again_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  CondVar expiry_changed_;
  std::optional<Instant> expiry_at_ GUARDED_BY(mutex_);  // when the thread looks for expired calls
  std::jthread expiry_thread_ GUARDED_BY(mutex_);

  std::vector<std::jthread> threads_;
};

}  // namespace weir::infer
