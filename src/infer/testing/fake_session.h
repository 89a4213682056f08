// A Session for tests: answers by a function, keeps what it was asked, and can be held closed like a gate.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "infer/engine.h"

namespace weir::infer::testing {

// Thread-safe. Without an `answer` the outputs are the inputs.
class FakeSession final : public Session {
 public:
  using Answer = std::function<Result<RunResult>(const std::vector<Tensor>&)>;
  struct Options {
    std::vector<TensorInfo> inputs = {{.name = "x", .shape = {-1, 4}}};
    std::vector<TensorInfo> outputs = {{.name = "x", .shape = {-1, 4}}};
    int callers = 1;
    Answer answer;
  };
  FakeSession() = default;
  explicit FakeSession(Options options) : options_(std::move(options)) {}

  const std::vector<TensorInfo>& inputs() const override { return options_.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return options_.outputs; }
  std::string precision() const override { return "fake"; }
  int threads() const override { return 1; }
  int streams() const override { return options_.callers; }
  int callers() const override { return options_.callers; }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>&) override {
    {
      MutexLock lock(mutex_);
      batches_.push_back(inputs);
      changed_.NotifyAll();
      while (closed_) changed_.Wait(mutex_);
    }
    if (options_.answer) return options_.answer(inputs);
    return RunResult{.outputs = inputs, .started = {}};
  }

  // From Close to Open every Run blocks.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(mutex_);
    closed_ = false;
    changed_.NotifyAll();
  }
  // Blocks until `count` Runs have begun, in all.
  void WaitForRuns(size_t count) {
    MutexLock lock(mutex_);
    while (batches_.size() < count) changed_.Wait(mutex_);
  }
  // What each Run was given, in the order of their beginning.
  std::vector<std::vector<Tensor>> batches() const {
    MutexLock lock(mutex_);
    return batches_;
  }

 private:
  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::vector<Tensor>> batches_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace weir::infer::testing
