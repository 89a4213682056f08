#include "infer/engines/emulated.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "infer/engines/binding.h"
#include "infer/engines/emulated_answer.h"
#include "infer/engines/timer_thread.h"

namespace weir::infer {
namespace {

class EmulatedSession final : public Session {
 public:
  EmulatedSession(const EmulatedOptions& options, EmulatedAnswer answer, const Clock& clock)
      : options_(options), answer_(std::move(answer)), clock_(clock), schedule_(options.timing) {
    const bool takes_time = options.timing.base + options.timing.per_item > Duration::zero();
    if (takes_time) pacer_ = std::make_unique<TimerThread>(clock);
  }

  const std::vector<TensorInfo>& inputs() const override { return answer_.inputs(); }
  const std::vector<TensorInfo>& outputs() const override { return answer_.outputs(); }
  std::string precision() const override { return "emulated"; }
  int threads() const override { return 0; }
  int streams() const override { return options_.timing.streams; }
  int callers() const override { return options_.timing.streams + 1; }
  bool invents_answers() const override { return true; }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>& wanted) override {
    auto result = Begin(inputs, wanted);
    if (result && pacer_) pacer_->WaitUntil(*result->done);
    return result;
  }

  bool asynchronous() const override { return true; }

  void Start(std::vector<Tensor> inputs, std::vector<std::string> wanted, Done done) override {
    auto result = Begin(inputs, wanted);
    if (!result || !pacer_) return done(std::move(result));
    const Instant due = *result->done;
    pacer_->CallAt(
        due, [result = std::move(result), done = std::move(done)]() mutable { done(std::move(result)); });
  }

  std::optional<EngineStats> Stats() const override {
    MutexLock lock(mutex_);
    return EngineStats{.busy = schedule_.BusyUntil(clock_.Now()),
                       .spin = pacer_ ? pacer_->spin() : Duration::zero()};
  }

 private:
  // The answer, to be given when `done` comes.
  Result<RunResult> Begin(const std::vector<Tensor>& inputs, const std::vector<std::string>& wanted) {
    const auto bound = TRY(BindInputs(answer_.inputs(), inputs));
    const auto indices = TRY(BindOutputs(answer_.outputs(), wanted));
    const int64_t items = bound.empty() || bound[0] == nullptr ? 1 : BatchSize(bound[0]->shape);
    if (items > options_.max_batch) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the emulated accelerator takes batches of at most {} items, not {}",
                              options_.max_batch, items));
    }
    const BusySchedule::Slot slot = Reserve(items);
    auto outputs = TRY(answer_.Make(bound, indices));  // while the accelerator computes, as it were
    return RunResult{.outputs = std::move(outputs), .started = slot.start, .done = slot.end};
  }

  BusySchedule::Slot Reserve(int64_t items) {
    MutexLock lock(mutex_);
    return schedule_.Reserve(items, clock_.Now());
  }

  const EmulatedOptions options_;
  const EmulatedAnswer answer_;
  const Clock& clock_;

  mutable Mutex mutex_;
  BusySchedule schedule_ GUARDED_BY(mutex_);

  std::unique_ptr<TimerThread> pacer_;  // none where nothing takes time
};

class EmulatedEngine final : public Engine {
 public:
  EmulatedEngine(const EmulatedOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  std::string name() const override { return "emulated"; }
  std::string version() const override { return "1"; }

  Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) override {
    if (options.precision != "f32") {
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("the emulated engine has no arithmetic, so no precision '{}': leave the precision out "
                      "and give the time it takes",
                      options.precision));
    }
    auto answer = TRY(EmulatedAnswer::Create(source.inputs, source.outputs));
    return std::make_shared<EmulatedSession>(options_, std::move(answer), clock_);
  }

 private:
  const EmulatedOptions options_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<Engine> MakeEmulatedEngine(const EmulatedOptions& options, const Clock& clock) {
  return std::make_unique<EmulatedEngine>(options, clock);
}

}  // namespace weir::infer
