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
#include "infer/device.h"
#include "infer/device_stages.h"
#include "infer/tensor.h"

namespace weir::infer {

// Pixels in the place of a model's input, which a device normalises: UINT8 [N,height,width,channels].
struct PixelInput {
  std::string input;
  int width = 0, height = 0, channels = 3;
  bool planar = false;       // the model's own input has channel after channel
  std::vector<float> table;  // the values of the 256 levels of each channel
};

// A model as an engine is given it. The file has been found safe by the caller (model/ refuses what is not).
struct ModelSource {
  std::string path;  // the ONNX file; empty for an emulated model without a file
  std::string onnx;  // the model at another precision, in the place of the file's; empty: as the file has it
  // As the file or the configuration declares them. The emulated engine believes these; the others read the
  // file, and take from here which of a tensor's names is its own, a shape that the file does not tell, and
  // inputs that replace values of the file.
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

struct SessionOptions {
  int threads = 0;  // CPU threads in all; 0: all that this process may use; never more than those
  // Run calls that compute side by side. On the CPU they share the threads; 0: one per thread. On an
  // accelerator each device has so many; 0: two on CUDA, one on others.
  int streams = 1;
  std::vector<Device> devices = {};  // all of one kind; empty: the CPU. No engine ever takes another instead.
  // Arithmetic where the model says float: "f32", "bf16" or "f16". kUnsupported where an engine, or this
  // machine, has no such arithmetic: it is never changed silently.
  std::string precision = "f32";
  // Rows of every batch, where all have the same: an engine may compile for just these, and its inputs() then
  // say so. 0: any.
  int batch = 0;
  bool cuda_graph = false;       // of kCuda: a batch is recorded once and then launched whole
  int64_t gpu_memory_bytes = 0;  // of kCuda: the most that an instance may take for itself; 0: no limit
  std::optional<PixelInput> pixels = {};  // taken too, beside the input itself, by devices that normalise
  // Rows of the batches that an accelerator warms up for. It may compute a smaller batch as one of these.
  std::vector<int> batches = {};
  std::string cache_dir = {};  // compiled models are kept here by engines that can; empty: nowhere
};

struct RunResult {
  std::vector<Tensor> outputs;     // in the order asked for; memory of the engine, shared by Bytes
  std::optional<Instant> started;  // when the engine itself began: calls may wait inside it for their turn
  std::optional<Instant> done;  // when it ended, where it keeps its own time: the caller may be woken later
  std::optional<DeviceStages> stages = {};  // of an accelerator that tells
};

// The counters of an engine that keeps its own time, since it was loaded.
struct EngineStats {
  std::vector<Duration> busy;  // of each stream, or each GPU: time in which it computed a batch
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
  // Memory for an input, from which the session takes it without a copy of its own where it can. The bytes
  // are the caller's to write.
  virtual Bytes MakeInputMemory(size_t bytes) { return Bytes::AllocateUninitialized(bytes); }
  // The GPUs that it computes on, as CUDA counts them; each has as many of the streams.
  virtual std::vector<int> gpus() const { return {}; }
  // Their identifiers, in the same order, as NVML has them.
  virtual std::vector<std::string> gpu_uuids() const { return {}; }
  // How it takes pixels in the place of an input, where it does.
  virtual std::optional<PixelInput> pixels() const { return std::nullopt; }
  // Says why nothing can be computed any more in this process, once a device is lost.
  virtual std::optional<std::string> lost() const { return std::nullopt; }
  // Whether the outputs are made up instead of computed by the model: they mean nothing to people.
  virtual bool invents_answers() const { return false; }
  // Returns nullopt for engines that do not know their load; the CPU time of their threads is used instead.
  virtual std::optional<EngineStats> Stats() const { return std::nullopt; }
};

// Returns the folder with the engine for CUDA and its libraries, where one is there.
std::optional<std::string> FindCudaFolder();

// Returns sizes of batches to warm up for: 1, 2, 3, 4, 6, 8, 12 and so on up to `most`, which is the last. So
// a batch that is computed as the next larger size has at most half as many rows again.
std::vector<int> WarmBatches(int most);

// "4 threads in 2 streams", or "2 instances on cuda:0 and cuda:1".
std::string PlacesText(const Session& session);

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
// a bad spec, and for `devices` that the engine does not have. `clock` must outlive the engine and its
// sessions.
Result<std::unique_ptr<Engine>> OpenEngine(std::string_view spec, const Clock& clock,
                                           const std::vector<Device>& devices = {});

}  // namespace weir::infer
