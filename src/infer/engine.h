// Engines turn tensors into tensors: an inference library, or the emulated accelerator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

// A model as an engine is given it. The file has been found safe by the caller (model/ refuses what is not).
struct ModelSource {
  std::string path;  // the ONNX file; empty for an emulated model without a file
  // As the file or the configuration declares them. The emulated engine believes these; the others read the
  // file, and take from here only which of a tensor's names is its own.
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

struct SessionOptions {
  int threads = 0;  // CPU threads in all; 0: all that this process may use; never more than those
  int streams = 1;  // Run calls that compute side by side, sharing the threads; 0: one per thread
  // Arithmetic where the model says float: "f32", "bf16" or "f16". kUnsupported where an engine, or this
  // machine, has no such arithmetic: it is never changed silently.
  std::string precision = "f32";
  // Rows of every batch, where all have the same: an engine may compile for just these, and its inputs() then
  // say so. 0: any.
  int batch = 0;
  std::string cache_dir;  // compiled models are kept here by engines that can; empty: nowhere
};

struct RunResult {
  std::vector<Tensor> outputs;     // in the order asked for; memory of the engine, shared by Bytes
  std::optional<Instant> started;  // when the engine itself began: calls may wait inside it for their turn
  std::optional<Instant> done;  // when it ended, where it keeps its own time: the caller may be woken later
};

// The counters of an engine that keeps its own time, since it was loaded.
struct EngineStats {
  std::vector<Duration> busy;  // of each stream: time in which it computed a batch
  Duration spin{};             // CPU time burned only to keep the time: the engine's own cost, not work
};

// A loaded model. Thread-safe: Run may be called from several threads at once. Shared because calls in flight
// outlive a reload.
class Session {
 public:
  virtual ~Session() = default;
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;
  virtual std::string precision() const = 0;  // in force: "f32", "bf16", "f32 and int8, as the model" ...
  virtual int threads() const = 0;            // CPU threads in force; 0 for an accelerator
  virtual int streams() const = 0;            // Run calls that compute side by side; more than those wait
  virtual int callers() const = 0;            // calls in flight that keep it busy: streams, or more
  // `inputs` by name, each of the shape Run computes (the first dimension is the batch). `wanted` empty: all
  // outputs. Blocks until done. kInvalidArgument for wrong names, types or shapes; kInternal with the
  // library's words otherwise.
  virtual Result<RunResult> Run(const std::vector<Tensor>& inputs,
                                const std::vector<std::string>& wanted) = 0;
  // Whether Start returns before the answer is there, so that nobody has to wait in Run.
  virtual bool asynchronous() const { return false; }
  // Begins what Run does and calls `done` with its result, once: on any thread, possibly inside of Start. It
  // must not block for long, and may call Start. The session must outlive the calls in flight.
  using Done = std::move_only_function<void(Result<RunResult>)>;
  virtual void Start(std::vector<Tensor> inputs, std::vector<std::string> wanted, Done done) {
    done(Run(inputs, wanted));
  }
  // Whether the outputs are made up instead of computed by the model: they mean nothing to people.
  virtual bool invents_answers() const { return false; }
  // Returns nullopt for engines that do not know their load; the CPU time of their threads is used instead.
  virtual std::optional<EngineStats> Stats() const { return std::nullopt; }
};

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;     // "onnxruntime", "openvino", "emulated"
  virtual std::string version() const = 0;  // of the library
  virtual Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) = 0;
};

// `spec`: "onnxruntime", "openvino", or "emulated:base=1ms,per_item=1.9ms,streams=1,jitter=0.05,batch=64".
// kNotFound when the library is not on this machine, with the command that installs it; kInvalidArgument for
// a bad spec. `clock` must outlive the engine and its sessions.
Result<std::unique_ptr<Engine>> OpenEngine(std::string_view spec, const Clock& clock);

}  // namespace weir::infer
