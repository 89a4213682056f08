// One instance of a model on a GPU: a session of the library, a stream, and memory for inputs and outputs.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "gpu/objects.h"
#include "infer/engine.h"
#include "infer/engines/ort_library.h"

namespace weir::infer {

// For one thread, from Create on: the library keeps handles and recorded graphs by thread.
class OrtCudaInstance {
 public:
  // Loads the model. kUnsupported names the nodes that have no kernel for the GPU. `channels_last`: the order
  // in which convolutions compute, not that of the inputs and outputs.
  static Result<std::unique_ptr<OrtCudaInstance>> Create(OrtLibraryPtr library, gpu::ContextPtr context,
                                                         const ModelSource& source,
                                                         const SessionOptions& options, bool channels_last);
  // While the lock is held no graph is recorded, on any thread: for what asks the driver for memory, or gives
  // it back. Not again by a thread that holds it.
  static std::shared_lock<std::shared_mutex> NobodyRecords();
  // Where the device is lost the library's session is left behind: its destructor would throw.
  ~OrtCudaInstance();
  OrtCudaInstance(const OrtCudaInstance&) = delete;
  OrtCudaInstance& operator=(const OrtCudaInstance&) = delete;

  const OrtTensors& tensors() const { return tensors_; }
  const gpu::Context& context() const { return *context_; }

  // `inputs` in the order of tensors().inputs, `wanted` indices of tensors().outputs. Pixels (UINT8) for the
  // input of SessionOptions::pixels are normalised on the device. A batch whose graph is recorded replays it:
  // kKernels launches the kernels one by one all the same, and kRecord records the graph, at the second run
  // of a size. No memory may grow after that; where it does, no graph is replayed any more.
  enum class Graphs { kReplay, kRecord, kKernels };
  struct Answer {
    std::vector<Tensor> outputs;
    DeviceStages stages;
  };
  Result<Answer> Run(const std::vector<const Tensor*>& inputs, const std::vector<size_t>& wanted,
                     Graphs graphs = Graphs::kReplay);
  // Makes what lies in the places of outputs recognisable, so that a graph that does not write there is
  // found.
  Status SpoilOutputs();
  // From now on batches are computed at their own size.
  void StopPadding() { pads_ = false; }

 private:
  // A tensor's place on the host, which the device reads by itself, and on the device. Both grow.
  struct Place {
    gpu::Memory host, device;
  };
  OrtCudaInstance(OrtLibraryPtr library, gpu::ContextPtr context, const SessionOptions& options,
                  bool channels_last)
      : library_(std::move(library)),
        context_(std::move(context)),
        options_(options),
        channels_last_(channels_last) {}
  Status Load(const ModelSource& source);
  Result<std::shared_ptr<OrtSessionOptions>> MakeOptions(bool refuses_cpu) const;
  Result<std::shared_ptr<OrtSession>> Open(const ModelSource& source, OrtSessionOptions* options) const;
  std::string LeftOver(const ModelSource& source) const;
  Status LoadKernel();

  Status CheckGraphs() const;
  Status Reserve(Place& place, size_t host_bytes, size_t device_bytes);
  Result<OrtValuePtr> OnDevice(const gpu::Memory& memory, const TensorInfo& info, const Shape& shape) const;
  int64_t ComputedRows(int64_t rows, const std::vector<size_t>& wanted) const;
  Status Upload(const std::vector<const Tensor*>& inputs, int64_t rows, int64_t computed);
  Status Normalise(const Tensor& pixels, size_t input, int64_t rows, int64_t computed);
  Status Bind(const std::vector<const Tensor*>& inputs, const std::vector<size_t>& wanted, int64_t rows);
  Status Compute(int64_t rows, Graphs graphs);
  Result<std::vector<Tensor>> Download(const std::vector<size_t>& wanted, int64_t rows);
  Result<Tensor> Copied(size_t output, OrtValue* value);
  // The shape of an output at a batch of `rows`, where the model says it.
  std::optional<Shape> ShapeOf(size_t output, int64_t rows) const;
  bool TakesPixels(const Tensor& tensor) const;
  Status Check(OrtStatus* status, std::string_view what) const;

  const OrtLibraryPtr library_;
  const gpu::ContextPtr context_;
  const SessionOptions options_;
  const bool channels_last_;
  gpu::Stream stream_;
  gpu::Kernel kernel_;
  gpu::Memory table_;  // of pixels' values
  std::shared_ptr<OrtSession> session_;
  std::shared_ptr<OrtMemoryInfo> memory_info_;
  std::shared_ptr<OrtIoBinding> binding_;
  std::map<int64_t, std::shared_ptr<OrtRunOptions>> run_options_;  // by the number of their graph
  OrtTensors tensors_;
  std::vector<Place> inputs_, outputs_, pixels_;
  std::vector<bool> told_;      // by output: whether its shape is as the model says
  bool batched_ = false;        // whether the first dimensions are free
  bool pads_ = true;            // whether rows do not see one another
  std::set<int64_t> recorded_;  // sizes whose graphs may be replayed
};

// The nodes that the library's log places on the CPU: "Shape (/Shape), Gather (/Gather_1)"; empty where it
// names none. `log` has its messages, one a line.
std::string NodesOnCpu(std::string_view log);

}  // namespace weir::infer
