#include "infer/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/thread.h"
#include "infer/rows.h"

namespace weir::infer {
namespace {

// Marks that the calling thread is inside of a Runner's pump: a Completion there that submits the next call
// leaves it to the pump, so that the stack does not grow with every call.
class Pumping {
 public:
  explicit Pumping(const Runner* runner) : runner_(runner), outer_(innermost_) { innermost_ = this; }
  ~Pumping() { innermost_ = outer_; }
  Pumping(const Pumping&) = delete;
  Pumping& operator=(const Pumping&) = delete;

  static bool In(const Runner* runner) {
    const Pumping* frame = innermost_;
    while (frame != nullptr && frame->runner_ != runner) frame = frame->outer_;
    return frame != nullptr;
  }

 private:
  static thread_local const Pumping* innermost_;
  const Runner* const runner_;
  const Pumping* const outer_;
};
thread_local const Pumping* Pumping::innermost_ = nullptr;

void Refuse(std::vector<Batcher::Refused> refused) {
  for (Batcher::Refused& each : refused) each.call.Answer(std::unexpected(std::move(each.error)));
}

size_t InputBytes(const Batch& batch) {
  size_t bytes = 0;
  for (const Call& call : batch.calls) {
    for (const Tensor& input : call.request.inputs) bytes += input.data.size();
  }
  return bytes;
}

void Answer(Call& call, std::vector<Tensor> outputs, int64_t executed_batch) {
  Request& request = call.request;
  call.Answer(Response{.model = std::move(request.model),
                       .version = std::move(request.version),
                       .id = std::move(request.id),
                       .outputs = std::move(outputs),
                       .executed_batch = executed_batch});
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::Create(std::shared_ptr<Session> session, const Clock& clock,
                                               Options options) {
  CHECK(session != nullptr);
  if (options.workers < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("runner: workers is {}: give 1 or more, or 0 for as many as keep the engine busy",
                            options.workers));
  }
  if (options.workers == 0) options.workers = session->callers();
  auto batcher = TRY(Batcher::Create({.max_queue = options.max_queue, .batching = options.batching}));
  std::unique_ptr<Runner> runner(new Runner(std::move(session), clock, options, std::move(batcher)));
  runner->StartThreads(options.batching.max_wait > Duration::zero());
  return runner;
}

Runner::Runner(std::shared_ptr<Session> session, const Clock& clock, const Options& options, Batcher batcher)
    : session_(std::move(session)),
      clock_(clock),
      asynchronous_(session_->asynchronous()),
      workers_(options.workers),
      gathers_(asynchronous_ && options.batching.combine && options.batching.max_batch > 1 &&
               workers_ > session_->streams()),
      batcher_(std::move(batcher)),
      idle_(workers_) {
  under_way_.reserve(static_cast<size_t>(workers_));
}

void Runner::StartThreads(bool waits) {
  for (int i = 0; i < workers_ && !asynchronous_; ++i) {
    threads_.push_back(
        StartThread(ThreadRole::kRecogniser, std::to_string(i), [this](const std::stop_token&) { Work(); }));
  }
  if (asynchronous_ && (waits || gathers_)) {
    threads_.push_back(StartThread("batcher", [this](const std::stop_token&) { WatchWaits(); }));
  }
}

Runner::~Runner() {
  std::jthread expiry;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    batcher_.Hurry();
    expiry = std::move(expiry_thread_);
  }
  expiry_changed_.NotifyAll();
  changed_.NotifyAll();
  if (expiry.joinable()) expiry.join();
  if (asynchronous_) Drain();
  threads_.clear();
}

void Runner::Submit(Call call) {
  if (const Status taken = Offer(call); !taken) return call.Answer(std::unexpected(taken.error()));
  if (!asynchronous_) return changed_.NotifyOne();
  if (Pumping::In(this)) return;
  const Pumping pumping(this);
  Pump();
}

Status Runner::Offer(Call& call) {
  MutexLock lock(mutex_);
  const Instant now = clock_.Now();
  call.times.queued = now;
  if (stopping_) return Fail(ErrorCode::kCancelled, "the runner is stopping");
  TRY_STATUS(batcher_.Offer(call, LoadAt(now), now));
  const auto expiry = batcher_.next_expiry();
  if (expiry && (!expiry_at_ || *expiry < *expiry_at_)) WatchForExpiry();
  return {};
}

void Runner::WatchForExpiry() {
  expiry_at_ = batcher_.next_expiry();
  if (expiry_thread_.joinable()) return expiry_changed_.NotifyOne();
  try {
    expiry_thread_ = StartThread("expiry", [this](const std::stop_token&) { RefuseExpired(); });
  } catch (const std::system_error&) {  // too many threads: it is refused when its turn comes
    expiry_at_.reset();
  }
}

void Runner::RefuseExpired() {
  while (SleepUntilExpiry()) {
    constexpr Duration kRest = 1ms;  // those that expire close together are answered together
    std::vector<Batcher::Refused> refused;
    {
      MutexLock lock(mutex_);
      const Instant now = clock_.Now();
      batcher_.Expire(now, refused);
      expiry_at_ = batcher_.next_expiry();
      if (expiry_at_) expiry_at_ = std::max(*expiry_at_, now + kRest);
    }
    Refuse(std::move(refused));
  }
}

bool Runner::SleepUntilExpiry() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (!expiry_at_) {
      expiry_changed_.Wait(mutex_);
    } else if (clock_.Now() >= *expiry_at_) {
      return true;
    } else {
      expiry_changed_.WaitUntil(mutex_, *expiry_at_);
    }
  }
  return false;
}

Runner::Load Runner::load() const {
  MutexLock lock(mutex_);
  Load load{.queued_calls = batcher_.calls(),
            .queued_rows = batcher_.rows(),
            .in_flight = workers_ - idle_,
            .batch_time = batch_time_.Least(clock_.Now())};
  for (const Batch& batch : alone_) {
    ++load.queued_calls;
    load.queued_rows += batch.rows[0];
  }
  return load;
}

std::optional<Hang> Runner::hang(Instant now) const {
  MutexLock lock(mutex_);
  std::optional<Hang> longest;
  for (const UnderWay& batch : under_way_) {
    const auto hang = JudgeHang(batch.since, expected_time_.Of(batch.bytes), now);
    if (hang && (!longest || hang->running > longest->running)) longest = hang;
  }
  return longest;
}

EngineLoad Runner::LoadAt(Instant now) const {
  const auto batch_time = batch_time_.Least(now);
  return {.places = workers_, .idle = idle_, .batch_time = batch_time, .busy_until = BusyUntil(batch_time)};
}

// A batch behind another takes up to two batches' time, so that a quarter of the least is over while every
// stream still computes.
std::optional<Instant> Runner::BusyUntil(std::optional<Duration> batch_time) const {
  constexpr Duration kWorthAWakeUp = 100us;
  if (!gathers_ || !batch_time || *batch_time / 4 < kWorthAWakeUp) return std::nullopt;
  if (workers_ - idle_ < session_->streams()) return std::nullopt;
  return computing_since_ + *batch_time / 4;
}

// Takes the work that can begin now.
Runner::Taken Runner::TakeNext() {
  Taken taken;
  if (idle_ == 0 || (alone_.empty() && batcher_.empty())) return taken;
  const Instant now = clock_.Now();
  if (!alone_.empty()) {
    taken.batch = std::move(alone_.front());
    alone_.pop_front();
    taken.batch->calls[0].times.taken = now;
  } else {
    auto next = batcher_.Poll(LoadAt(now), now, taken.refused);
    if (auto* batch = std::get_if<Batch>(&next)) {
      taken.batch = std::move(*batch);
    } else {
      taken.ask_again = std::get<Batcher::Wait>(next).until;
    }
  }
  if (taken.batch) {
    if (workers_ - idle_ < session_->streams()) computing_since_ = now;
    --idle_;
    under_way_.push_back({.since = now, .bytes = InputBytes(*taken.batch)});
  }
  return taken;
}

Runner::UnderWay Runner::EndUnderWay(const Batch& batch) {
  const auto ended = std::ranges::find(under_way_, *batch.calls[0].times.taken, &UnderWay::since);
  CHECK(ended != under_way_.end());
  const UnderWay found = *ended;
  *ended = under_way_.back();
  under_way_.pop_back();
  return found;
}

bool Runner::Drained() const { return batcher_.empty() && alone_.empty() && unfinished_ == 0; }

Result<std::vector<Tensor>> Runner::InputsOf(Batch& batch) {
  std::vector<Call>& calls = batch.calls;
  if (calls.size() == 1) {
    calls[0].times.handed = calls[0].times.started = calls[0].times.taken;
    return std::move(calls[0].request.inputs);
  }
  auto inputs = TRY(JoinInputs(batch));
  const Instant now = clock_.Now();
  for (Call& call : calls) call.times.handed = call.times.started = now;
  return inputs;
}

void Runner::Complete(Batch batch, Result<RunResult> result) {
  if (!result && batch.calls.size() > 1) return GiveBack(std::move(batch));
  const Instant now = clock_.Now();
  {
    MutexLock lock(mutex_);
    ++idle_;  // before the answer, so that who sends the next call on it finds a place
    computing_since_ = now;
    const UnderWay ended = EndUnderWay(batch);
    if (result) batch_time_.Add(now - ended.since, now);
    if (result) expected_time_.Add(now - ended.since, ended.bytes);
  }
  for (Call& call : batch.calls) {
    call.request.inputs.clear();
    call.times.done = result && result->done ? *result->done : now;
    if (result && result->started) call.times.started = result->started;
    if (result) call.times.device = result->stages;
  }
  if (!result) return batch.calls[0].Answer(std::unexpected(std::move(result).error()));
  if (batch.calls.size() == 1) return Answer(batch.calls[0], std::move(result->outputs), batch.total_rows);
  auto parts = SplitOutputs(std::exchange(result->outputs, {}), batch.rows);
  for (size_t i = 0; i < batch.calls.size(); ++i) {
    if (parts) {
      Answer(batch.calls[i], std::move((*parts)[i]), batch.total_rows);
    } else {
      batch.calls[i].Answer(std::unexpected(parts.error()));
    }
  }
}

void Runner::GiveBack(Batch batch) {
  {
    MutexLock lock(mutex_);
    ++idle_;
    EndUnderWay(batch);
    for (size_t i = 0; i < batch.calls.size(); ++i) {
      Batch& one = alone_.emplace_back();
      one.calls.push_back(std::move(batch.calls[i]));
      one.rows.push_back(batch.rows[i]);
      one.total_rows = batch.rows[i];
    }
  }
  changed_.NotifyAll();
}

void Runner::Work() {
  while (std::optional<Taken> taken = WaitForNext()) {
    Refuse(std::move(taken->refused));
    if (!taken->batch) continue;
    auto result = Run(*taken->batch);
    Complete(*std::move(taken->batch), std::move(result));
  }
}

std::optional<Runner::Taken> Runner::WaitForNext() {
  MutexLock lock(mutex_);
  while (true) {
    Taken taken = TakeNext();
    if (!taken.empty()) {
      if (idle_ > 0 && !batcher_.empty()) changed_.NotifyOne();  // for what is left somebody has to look out
      return taken;
    }
    if (stopping_ && Drained()) return std::nullopt;
    if (taken.ask_again) {
      changed_.WaitUntil(mutex_, *taken.ask_again);
    } else {
      changed_.Wait(mutex_);
    }
  }
}

Result<RunResult> Runner::Run(Batch& batch) {
  const std::vector<Tensor> inputs = TRY(InputsOf(batch));
  return session_->Run(inputs, batch.calls[0].request.outputs);
}

// Begins batches while there are any and places for them. REQUIRES: Pumping::In(this).
void Runner::Pump() {
  while (true) {
    Taken taken;
    {
      MutexLock lock(mutex_);
      taken = TakeNext();
      if (taken.batch) ++unfinished_;
      if (taken.ask_again && (!ask_again_ || *taken.ask_again < *ask_again_)) {
        ask_again_ = taken.ask_again;
        changed_.NotifyAll();
      }
    }
    if (taken.empty()) return;
    Refuse(std::move(taken.refused));
    if (taken.batch) Start(*std::move(taken.batch));
  }
}

void Runner::Start(Batch batch) {
  auto inputs = InputsOf(batch);
  if (!inputs) return Ended(std::move(batch), std::unexpected(std::move(inputs).error()));
  std::vector<std::string> wanted = batch.calls[0].request.outputs;
  session_->Start(*std::move(inputs), std::move(wanted),
                  [this, batch = std::move(batch)](Result<RunResult> result) mutable {
                    Ended(std::move(batch), std::move(result));
                  });
}

void Runner::Ended(Batch batch, Result<RunResult> result) {
  if (Pumping::In(this)) {
    Complete(std::move(batch), std::move(result));
  } else {
    const Pumping pumping(this);  // the calls that the answers bring go together
    Complete(std::move(batch), std::move(result));
    Pump();
  }
  MutexLock lock(mutex_);
  --unfinished_;
  if (stopping_) changed_.NotifyAll();
}

void Runner::WatchWaits() {
  while (SleepUntilAsked()) {
    const Pumping pumping(this);
    Pump();
  }
}

bool Runner::SleepUntilAsked() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (!ask_again_) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, *ask_again_)) {
      ask_again_.reset();
      return true;
    }
  }
  return false;
}

void Runner::Drain() {
  {
    const Pumping pumping(this);
    Pump();
  }
  MutexLock lock(mutex_);
  while (!Drained()) changed_.Wait(mutex_);
}

}  // namespace weir::infer
