// A Session for tests: answers by a function, keeps what it was asked, and can be held closed like a gate.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "infer/engine.h"

namespace weir::infer::testing {

// Thread-safe. Without an `answer` the outputs are the inputs. An asynchronous one answers inside of Start,
// or, held closed, when Open or Finish is called, and there.
class FakeSession final : public Session {
 public:
  using Answer = std::function<Result<RunResult>(const std::vector<Tensor>&)>;
  struct Options {
    std::vector<TensorInfo> inputs = {{.name = "x", .shape = {-1, 4}}};
    std::vector<TensorInfo> outputs = {{.name = "x", .shape = {-1, 4}}};
    int streams = 0;  // 0: as many as callers
    int callers = 1;
    bool asynchronous = false;
    Answer answer;
  };
  FakeSession() = default;
  explicit FakeSession(Options options) : options_(std::move(options)) {}

  const std::vector<TensorInfo>& inputs() const override { return options_.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return options_.outputs; }
  std::string precision() const override { return "fake"; }
  int threads() const override { return 1; }
  int streams() const override { return options_.streams > 0 ? options_.streams : options_.callers; }
  int callers() const override { return options_.callers; }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>&) override {
    {
      MutexLock lock(mutex_);
      batches_.push_back(inputs);
      changed_.NotifyAll();
      while (closed_) changed_.Wait(mutex_);
    }
    return Compute(inputs);
  }

  bool asynchronous() const override { return options_.asynchronous; }

  void Start(std::vector<Tensor> inputs, std::vector<std::string>, Done done) override {
    {
      MutexLock lock(mutex_);
      batches_.push_back(inputs);
      changed_.NotifyAll();
      if (closed_) return started_.push_back({std::move(inputs), std::move(done)});
    }
    done(Compute(inputs));
  }

  // From Close to Open every Run blocks.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  void Open() {
    {
      MutexLock lock(mutex_);
      closed_ = false;
      changed_.NotifyAll();
    }
    while (Finish()) {
    }
  }
  // Answers the first Start that is not answered; false when there is none.
  bool Finish() {
    Started first;
    {
      MutexLock lock(mutex_);
      if (started_.empty()) return false;
      first = std::move(started_.front());
      started_.pop_front();
    }
    first.done(Compute(first.inputs));
    return true;
  }
  // Blocks until `count` Runs have begun, in all.
  void WaitForRuns(size_t count) {
    MutexLock lock(mutex_);
    while (batches_.size() < count) changed_.Wait(mutex_);
  }
  // Returns the inputs of each Run, in the order of their beginning.
  std::vector<std::vector<Tensor>> batches() const {
    MutexLock lock(mutex_);
    return batches_;
  }

 private:
  struct Started {
    std::vector<Tensor> inputs;
    Done done;
  };
  Result<RunResult> Compute(const std::vector<Tensor>& inputs) const {
    if (options_.answer) return options_.answer(inputs);
    return RunResult{.outputs = inputs, .started = {}};
  }

  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<Tensor>> batches_ GUARDED_BY(mutex_);
  std::deque<Started> started_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace weir::infer::testing
