// Collects the answers of calls, and makes tensors.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "infer/call.h"

namespace weir::infer::testing {

// A FP32 tensor; `values` fill `shape`.
inline Tensor FloatTensor(std::string name, Shape shape, const std::vector<float>& values) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .data = Bytes::Copy(std::as_bytes(std::span(values)))};
}

inline std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

struct Answered {
  std::string id;  // of the request
  Result<Response> result;
  Times times;
};

// Thread-safe. Must outlive the calls it makes.
class Answers {
 public:
  Call MakeCall(const std::string& id, std::vector<Tensor> inputs = {}) {
    Call call;
    call.request.id = id;
    call.request.inputs = std::move(inputs);
    call.completion = Completion([this, id](Result<Response> result, const Times& times) {
      MutexLock lock(mutex_);
      answered_.push_back({id, std::move(result), times});
      changed_.NotifyAll();
    });
    return call;
  }
  // All answers so far, in the order of completion, once there are `count`.
  std::vector<Answered> Wait(size_t count) {
    MutexLock lock(mutex_);
    while (answered_.size() < count) changed_.Wait(mutex_);
    return answered_;
  }
  size_t count() const {
    MutexLock lock(mutex_);
    return answered_.size();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Answered> answered_ GUARDED_BY(mutex_);
};

}  // namespace weir::infer::testing
