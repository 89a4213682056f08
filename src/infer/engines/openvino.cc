#include "infer/engines/openvino.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "infer/engines/binding.h"
#include "infer/engines/openvino_library.h"
#include "infer/engines/openvino_request.h"
#include "infer/engines/quantised.h"
#include "infer/engines/thread_share.h"

namespace weir::infer {
namespace {

using PortPtr = std::shared_ptr<ov_output_const_port_t>;

Result<std::string> AnyName(const OpenVinoPtr& library, const PortPtr& port) {
  char* name = nullptr;
  TRY_STATUS(library->Check(library->ov_port_get_any_name(port.get(), &name), "read a tensor's name"));
  std::string copy = name;
  library->ov_free(name);
  return copy;
}

Result<TensorInfo> Describe(const OpenVinoPtr& library, const PortPtr& port) {
  TensorInfo info{.name = TRY(AnyName(library, port))};
  ov_element_type_e type{};
  TRY_STATUS(library->Check(library->ov_port_get_element_type(port.get(), &type), info.name));
  info.dtype = TRY_CONTEXT(FromOpenVino(type), fmt::format("'{}'", info.name));
  ov_partial_shape_t shape{};
  TRY_STATUS(library->Check(library->ov_port_get_partial_shape(port.get(), &shape), info.name));
  info.any_rank = shape.rank.min != shape.rank.max;
  if (info.any_rank) info.shape = {-1};
  for (int64_t i = 0; !info.any_rank && i < shape.rank.max; ++i) {
    const ov_dimension_t& dim = shape.dims[i];
    info.shape.push_back(dim.min == dim.max ? dim.min : -1);
  }
  library->ov_partial_shape_free(&shape);
  return info;
}

// One side of a compiled model, its inputs or its outputs.
struct Side {
  decltype(&ov_compiled_model_inputs_size) count;
  decltype(&ov_compiled_model_input_by_index) by_index;
  decltype(&ov_compiled_model_input_by_name) by_name;
};

// A tensor goes by every name that it has on its way through the graph, and the library tells any of them:
// `declared` says which one the file gives it. The last that no name finds is the one that is left.
Status TakeDeclaredNames(const OpenVinoPtr& library, const ov_compiled_model_t* model, const Side& side,
                         const std::vector<TensorInfo>& declared, std::vector<TensorInfo>& infos) {
  std::vector<std::string> told, left;
  for (const TensorInfo& info : infos) told.push_back(info.name);
  for (const TensorInfo& wanted : declared) {
    ov_output_const_port_t* port = nullptr;
    std::string name;
    if (side.by_name(model, wanted.name.c_str(), &port) == ov_status_e::OK)
      name = TRY(AnyName(library, Own(library, port, &OpenVinoLibrary::ov_output_const_port_free)));
    const auto match = std::ranges::find(told, name);
    if (name.empty() || match == told.end()) {
      left.push_back(wanted.name);
      continue;
    }
    infos[static_cast<size_t>(match - told.begin())].name = wanted.name;
    match->clear();
  }
  if (left.empty()) return {};
  if (declared.size() > infos.size()) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("input '{}' has a value in the model file, and openvino takes no other: leave the "
                    "input out of config.pbtxt, or use the onnxruntime engine",
                    left.front()));
  }
  const auto last = std::ranges::find_if(told, [](const std::string& name) { return !name.empty(); });
  if (left.size() > 1 || declared.size() != infos.size() || last == told.end()) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("openvino knows the model's {} under other names: use the onnxruntime engine",
                            fmt::join(left, ", ")));
  }
  infos[static_cast<size_t>(last - told.begin())].name = left.front();
  return {};
}

Result<std::vector<TensorInfo>> ReadInfos(const OpenVinoPtr& library, const ov_compiled_model_t* model,
                                          const Side& side, const std::vector<TensorInfo>& declared) {
  size_t count = 0;
  TRY_STATUS(library->Check(side.count(model, &count), "count the tensors"));
  std::vector<TensorInfo> infos;
  for (size_t i = 0; i < count; ++i) {
    ov_output_const_port_t* port = nullptr;
    TRY_STATUS(library->Check(side.by_index(model, i, &port), "read a tensor"));
    infos.push_back(TRY(Describe(library, Own(library, port, &OpenVinoLibrary::ov_output_const_port_free))));
  }
  TRY_STATUS(TakeDeclaredNames(library, model, side, declared, infos));
  return infos;
}

Result<std::string> ReadProperty(const OpenVinoPtr& library, const ov_compiled_model_t* model,
                                 const char* key) {
  char* text = nullptr;
  TRY_STATUS(library->Check(library->ov_compiled_model_get_property(model, key, &text), key));
  std::string copy = text;
  library->ov_free(text);
  return copy;
}

class OpenVinoSession final : public Session {
 public:
  struct Loaded {
    std::shared_ptr<ov_compiled_model_t> model;
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
    std::string precision;
    ThreadShare share;
  };
  OpenVinoSession(Loaded loaded, std::vector<OpenVinoRequest> requests, const Clock& clock)
      : loaded_(std::move(loaded)),
        handed_on_(InputsHandedOn(loaded_.inputs, loaded_.outputs)),
        clock_(clock),
        requests_(std::move(requests)) {
    for (OpenVinoRequest& request : requests_) free_.push_back(&request);
  }

  const std::vector<TensorInfo>& inputs() const override { return loaded_.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return loaded_.outputs; }
  std::string precision() const override { return loaded_.precision; }
  int threads() const override { return loaded_.share.threads; }
  int streams() const override { return loaded_.share.streams; }
  int callers() const override { return loaded_.share.streams; }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>& wanted) override {
    const auto bound = TRY(BindInputs(loaded_.inputs, inputs));
    const auto indices = TRY(BindOutputs(loaded_.outputs, wanted));
    std::vector<size_t> computed;
    std::ranges::copy_if(indices, std::back_inserter(computed), [&](size_t i) { return !handed_on_[i]; });
    OpenVinoRequest& request = TakeRequest();
    RunResult result{.outputs = {}, .started = clock_.Now()};
    auto outputs = request.Run(bound, computed);
    GiveBack(request);
    if (!outputs) return std::unexpected(std::move(outputs).error());
    auto next = outputs->begin();
    for (const size_t i : indices)
      result.outputs.push_back(handed_on_[i] ? AnswerWith(*bound[*handed_on_[i]]) : std::move(*next++));
    return result;
  }

 private:
  OpenVinoRequest& TakeRequest() {
    MutexLock lock(mutex_);
    while (free_.empty()) changed_.Wait(mutex_);
    OpenVinoRequest& request = *free_.back();
    free_.pop_back();
    return request;
  }
  void GiveBack(OpenVinoRequest& request) {
    {
      MutexLock lock(mutex_);
      free_.push_back(&request);
    }
    changed_.NotifyOne();
  }

  const Loaded loaded_;
  const std::vector<std::optional<size_t>> handed_on_;  // by output: the input that it is
  const Clock& clock_;
  std::vector<OpenVinoRequest> requests_;  // one for each stream

  Mutex mutex_;
  CondVar changed_;
  std::vector<OpenVinoRequest*> free_ GUARDED_BY(mutex_);
};

class OpenVinoEngine final : public Engine {
 public:
  OpenVinoEngine(OpenVinoPtr library, std::shared_ptr<ov_core_t> core, const Clock& clock)
      : library_(std::move(library)), core_(std::move(core)), clock_(clock) {}

  std::string name() const override { return "openvino"; }
  std::string version() const override { return library_->version; }
  Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) override;

 private:
  using ModelPtr = std::shared_ptr<ov_compiled_model_t>;
  Result<std::string> FindDevice(const std::vector<Device>& devices) const;
  Result<ModelPtr> Compile(const ModelSource& source, const SessionOptions& options,
                           const std::string& device, const ThreadShare& share) const;
  Result<std::shared_ptr<ov_model_t>> ReadForBatch(const ModelSource& source, int batch) const;

  const OpenVinoPtr library_;
  const std::shared_ptr<ov_core_t> core_;
  const Clock& clock_;
};

Result<std::shared_ptr<Session>> OpenVinoEngine::Load(const ModelSource& source,
                                                      const SessionOptions& options) {
  if (options.precision != "f32" && options.precision != "bf16" && options.precision != "f16") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("unknown precision '{}': openvino takes f32, bf16 or f16", options.precision));
  }
  const std::string device = TRY(FindDevice(options.devices));
  ThreadShare share = TRY(ShareThreads(options, UsableCpus()));
  if (device != "CPU") share = {.threads = 0, .streams = std::max(1, options.streams)};
  std::string precision = TRY(PrecisionInForce(source.path, options.precision));
  const ModelPtr model = TRY(Compile(source, options, device, share));
  const std::string in_force = TRY(ReadProperty(library_, model.get(), "INFERENCE_PRECISION_HINT"));
  if (in_force != options.precision) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("openvino has no {} on this {}, it would compute in {}: choose that precision",
                            options.precision, device, in_force));
  }
  OpenVinoSession::Loaded loaded{
      .model = model, .inputs = {}, .outputs = {}, .precision = std::move(precision), .share = share};
  const OpenVinoLibrary& api = *library_;
  const Side inputs{api.ov_compiled_model_inputs_size, api.ov_compiled_model_input_by_index,
                    api.ov_compiled_model_input_by_name};
  const Side outputs{api.ov_compiled_model_outputs_size, api.ov_compiled_model_output_by_index,
                     api.ov_compiled_model_output_by_name};
  loaded.inputs = TRY(ReadInfos(library_, model.get(), inputs, source.inputs));
  loaded.outputs = TRY(ReadInfos(library_, model.get(), outputs, source.outputs));
  std::vector<OpenVinoRequest> requests;
  for (int i = 0; i < share.streams; ++i)
    requests.push_back(TRY(OpenVinoRequest::Create(library_, model.get(), loaded.outputs)));
  return std::make_shared<OpenVinoSession>(std::move(loaded), std::move(requests), clock_);
}

// Returns the library's name of the device. kUnsupported where that is not on this machine, with those that
// are: the library itself would say no more than that compiling failed.
Result<std::string> OpenVinoEngine::FindDevice(const std::vector<Device>& devices) const {
  if (!IsAccelerator(devices)) return "CPU";
  const auto refuse = [&](std::string why) {
    return Fail(ErrorCode::kUnsupported, fmt::format("device {}: {}", ToString(devices), why));
  };
  if (devices.size() > 1) return refuse("the engine openvino takes one device: name one");
  const bool is_npu = devices.front().kind == Device::Kind::kNpu;
  ov_available_devices_t found{};
  TRY_STATUS(
      library_->Check(library_->ov_core_get_available_devices(core_.get(), &found), "list the devices"));
  const std::vector<std::string> names(found.devices, found.devices + found.size);
  library_->ov_available_devices_free(&found);
  // A lone GPU is called "GPU", several "GPU.0", "GPU.1".
  const std::string kind = is_npu ? "NPU" : "GPU",
                    numbered = fmt::format("{}.{}", kind, devices.front().index);
  if (std::ranges::find(names, numbered) != names.end()) return numbered;
  if (devices.front().index == 0 && std::ranges::find(names, kind) != names.end()) return kind;
  return refuse(fmt::format("openvino finds {} on this machine: {}", fmt::join(names, ", "),
                            is_npu
                                ? "an Intel NPU needs its driver (intel_vpu and level-zero)"
                                : "an Intel GPU needs intel-opencl-icd, and this user in the group render"));
}

// The library computes faster where it knows the batch beforehand (1.2 times, for small networks).
Result<std::shared_ptr<ov_model_t>> OpenVinoEngine::ReadForBatch(const ModelSource& source, int batch) const {
  ov_model_t* raw = nullptr;
  TRY_STATUS(library_->Check(library_->ov_core_read_model(core_.get(), source.path.c_str(), "", &raw),
                             source.path, ErrorCode::kInvalidArgument));
  auto model = Own(library_, raw, &OpenVinoLibrary::ov_model_free);
  std::vector<std::vector<ov_dimension_t>> dims;
  std::vector<ov_partial_shape_t> shapes;
  std::vector<const char*> names;
  for (const TensorInfo& input : source.inputs) {
    auto& shape = dims.emplace_back();
    for (const int64_t dim : input.shape) shape.push_back({dim, dim});
    shape.front() = {batch, batch};
    const auto rank = static_cast<int64_t>(shape.size());
    shapes.push_back({.rank = {rank, rank}, .dims = shape.data()});
    names.push_back(input.name.c_str());
  }
  TRY_STATUS(library_->Check(
      library_->ov_model_reshape(model.get(), names.data(), shapes.data(), names.size()),
      fmt::format("{}: fix the batch at {}", source.path, batch), ErrorCode::kInvalidArgument));
  return model;
}

Result<OpenVinoEngine::ModelPtr> OpenVinoEngine::Compile(const ModelSource& source,
                                                         const SessionOptions& options,
                                                         const std::string& device,
                                                         const ThreadShare& share) const {
  const std::string threads = fmt::format("{}", share.threads), streams = fmt::format("{}", share.streams);
  ov_compiled_model_t* compiled = nullptr;
  const auto compile = [&](auto function, const auto* what) {
    if (device != "CPU")
      return (library_.get()->*function)(core_.get(), what, device.c_str(), 6, &compiled,
                                         "INFERENCE_PRECISION_HINT", options.precision.c_str(),  //
                                         "NUM_STREAMS", streams.c_str(),                         //
                                         "CACHE_DIR", options.cache_dir.c_str());
    return (library_.get()->*function)(core_.get(), what, "CPU", 10, &compiled,  // 10: keys and values
                                       "INFERENCE_PRECISION_HINT", options.precision.c_str(),  //
                                       "INFERENCE_NUM_THREADS", threads.c_str(),               //
                                       "NUM_STREAMS", streams.c_str(),                         //
                                       "CACHE_DIR", options.cache_dir.c_str(),                 // empty: none
                                       "ENABLE_CPU_PINNING",
                                       "NO");  // the machine is shared with our own threads
  };
  const bool batch_is_free = std::ranges::all_of(
      source.inputs, [](const TensorInfo& input) { return !input.shape.empty() && input.shape.front() < 0; });
  ov_status_e status{};
  if (options.batch > 0 && batch_is_free && !source.inputs.empty()) {
    const auto model = TRY(ReadForBatch(source, options.batch));
    status = compile(&OpenVinoLibrary::ov_core_compile_model, model.get());
  } else {
    status = compile(&OpenVinoLibrary::ov_core_compile_model_from_file, source.path.c_str());
  }
  TRY_STATUS(library_->Check(status, source.path, ErrorCode::kInvalidArgument));
  return Own(library_, compiled, &OpenVinoLibrary::ov_compiled_model_free);
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenOpenVino(const Clock& clock) {
  auto library = TRY(OpenVinoLibrary::Open());
  ov_core_t* core = nullptr;
  TRY_STATUS(library->Check(library->ov_core_create(&core), "engine openvino"));
  auto owned = Own(library, core, &OpenVinoLibrary::ov_core_free);
  return std::make_unique<OpenVinoEngine>(std::move(library), std::move(owned), clock);
}

}  // namespace weir::infer
