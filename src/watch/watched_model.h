// A model that live frames go through, in this process or on a server.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "infer/service.h"
#include "infer/tensor.h"

namespace weir::watch {

struct ModelOptions {
  std::string model;      // a file, a folder or a URL
  std::string recipe;     // a file instead of the model's own
  std::string engine;     // empty: the model's own
  int threads = 0;        // of the engine; 0: its own choice
  int streams = 0;        // batches that compute side by side; 0: its own choice
  std::string precision;  // empty: the model's own
  std::string device;     // as infer::ParseDevices reads; empty: the model's own
  int batch = 0;          // frames a batch at most; 0: 8 on an accelerator, 1 on a CPU
};

// Thread-safe once opened.
class WatchedModel {
 public:
  // `clock` must outlive it. Errors are those of opening the model; kInvalidArgument if it has no recipe,
  // kUnsupported for several inputs, or a fixed batch above 1.
  static Result<std::unique_ptr<WatchedModel>> Open(const ModelOptions& options, const Clock& clock);
  ~WatchedModel();

  const std::string& name() const { return name_; }
  const dataset::Recipe& recipe() const { return recipe_; }
  const std::vector<infer::TensorInfo>& outputs() const { return outputs_; }
  const std::vector<std::string>& labels() const { return labels_; }
  const std::string& engine() const { return engine_; }  // in words: "onnxruntime 1.31.1, 2 threads"
  // The output that the recipe names, or the only one; empty where there are several and none is named.
  const std::string& output() const { return output_; }
  int capacity() const { return capacity_; }  // frames in flight that keep it busy
  int streams() const { return streams_; }    // batches that compute side by side; 0: a server's, not known
  bool on_cpu() const { return on_cpu_; }     // it computes on the CPUs of this process

  // Runs one item of zeros, so that the first frame does not pay for the engine's first run.
  Status WarmUp(const Clock& clock);
  // Submits one item of the input. `done` as infer::Completion's function.
  void Submit(Bytes item, std::optional<Instant> deadline, infer::Completion::Function done);
  // Time in which the engine computed, over all batches since ResetBusy.
  Duration busy() const { return Duration(busy_->load()); }
  void ResetBusy() { busy_->store(0); }
  // Whether its answers mean nothing: an emulated engine's.
  bool emulated() const { return emulated_; }

 private:
  struct Backend;
  WatchedModel();
  Status OpenLocal(const ModelOptions& options, const Clock& clock);
  Status OpenRemote(const ModelOptions& options, const Clock& clock);
  Status Complete(std::vector<infer::TensorInfo> inputs);

  std::string name_, version_, engine_, output_;
  dataset::Recipe recipe_;
  infer::TensorInfo input_;
  std::vector<infer::TensorInfo> outputs_;
  std::vector<std::string> labels_;
  int capacity_ = 1, streams_ = 0;
  bool on_cpu_ = false, emulated_ = false;
  const std::shared_ptr<std::atomic<Duration::rep>> busy_;  // completions may outlive nothing else
  std::unique_ptr<Backend> backend_;                        // last: its destructor answers what is in flight
};

}  // namespace weir::watch
