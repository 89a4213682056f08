#include "infer/engines/ort_cuda_instance.h"

#include <fmt/format.h>
#include <onnxruntime_run_options_config_keys.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "gpu/normalise.h"
#include "infer/engines/binding.h"

namespace weir::infer {
namespace {

constexpr size_t kBegin = 0, kUploaded = 1, kComputed = 2, kEnd = 3, kMarks = 4;
constexpr size_t kMostNodesShown = 8;
constexpr int64_t kNoGraph = -1;  // the library's number for a run that is neither recorded nor replayed

// While a graph is recorded, nothing else may happen on any device of the process: what another thread does
// to memory spoils the recording.
std::shared_mutex& Recording() {
  static std::shared_mutex mutex;
  return mutex;
}

}  // namespace

std::string NodesOnCpu(std::string_view log) {
  constexpr std::string_view kOnCpu = "placed on [CPUExecutionProvider]", kAny = "placed on [";
  if (log.find("All nodes placed on [CPUExecutionProvider]") != std::string_view::npos)
    return "any of its nodes";
  std::vector<std::string_view> nodes;
  bool is_cpu = false;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    const bool is_heading = line.find(kAny) != std::string_view::npos;
    if (is_heading) is_cpu = line.find(kOnCpu) != std::string_view::npos;
    if (is_heading || !is_cpu || !line.starts_with("  ") || line.find('(') == std::string_view::npos)
      continue;
    nodes.push_back(line.substr(2));
  }
  const size_t shown = std::min(nodes.size(), kMostNodesShown);
  std::string text =
      fmt::format("{}", fmt::join(nodes.begin(), nodes.begin() + static_cast<long>(shown), ", "));
  if (shown < nodes.size()) text += fmt::format(" and {} more", nodes.size() - shown);
  return text;
}

Status OrtCudaInstance::Check(OrtStatus* status, std::string_view what) const {
  return library_->Check(status, fmt::format("cuda:{}: {}", context_->ordinal(), what));
}

Result<std::unique_ptr<OrtCudaInstance>> OrtCudaInstance::Create(OrtLibraryPtr library,
                                                                 gpu::ContextPtr context,
                                                                 const ModelSource& source,
                                                                 const SessionOptions& options,
                                                                 bool channels_last) {
  std::unique_ptr<OrtCudaInstance> instance(
      new OrtCudaInstance(std::move(library), std::move(context), options, channels_last));
  const auto nobody_records = NobodyRecords();
  TRY_STATUS(instance->Load(source));
  return instance;
}

std::shared_lock<std::shared_mutex> OrtCudaInstance::NobodyRecords() { return std::shared_lock(Recording()); }

OrtCudaInstance::~OrtCudaInstance() {
  const auto nobody_records = NobodyRecords();
  if (context_->Alive()) return;
  static std::mutex mutex;
  static auto* const left = new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  left->insert(left->end(), {std::move(binding_), std::move(session_)});
}

Status OrtCudaInstance::Load(const ModelSource& source) {
  TRY_STATUS(context_->MakeCurrent());
  stream_ = TRY(gpu::Stream::Create(context_, kMarks));
  const auto options = TRY(MakeOptions(true));
  auto opened = Open(source, options.get());
  if (!opened) {
    const std::string nodes = opened.error().message.contains("fallback") ? LeftOver(source) : std::string();
    if (nodes.empty()) return std::unexpected(opened.error());
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: the CUDA provider has no kernels for {}: export the model with fixed shapes "
                            "and simplify it, so that these are gone, or use --device cpu",
                            source.path, nodes));
  }
  session_ = *std::move(opened);
  tensors_ = TRY(ReadTensors(library_, session_.get(), source));
  if (std::ranges::any_of(tensors_.inputs, &TensorInfo::optional)) {
    return Fail(ErrorCode::kUnsupported,
                "an optional input is not taken on CUDA: leave it out of config.pbtxt, or use --device cpu");
  }
  const auto has_batch = [](const TensorInfo& info) { return !info.shape.empty() && info.shape.front() < 0; };
  batched_ = !tensors_.inputs.empty() && std::ranges::all_of(tensors_.inputs, has_batch);
  for (const auto* side : {&tensors_.inputs, &tensors_.outputs}) {
    for (const TensorInfo& info : *side) {
      if (info.dtype == DType::kBytes)
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("'{}' is text, which no GPU computes: use --device cpu", info.name));
    }
  }
  inputs_.resize(tensors_.inputs.size());
  pixels_.resize(tensors_.inputs.size());
  outputs_.resize(tensors_.outputs.size());
  told_.assign(tensors_.outputs.size(), true);
  const OrtApi& api = library_->api();
  OrtMemoryInfo* info = nullptr;
  TRY_STATUS(
      Check(api.CreateMemoryInfo("Cuda", OrtDeviceAllocator, context_->ordinal(), OrtMemTypeDefault, &info),
            "describe its memory"));
  memory_info_ = Own(library_, info, &OrtApi::ReleaseMemoryInfo);
  OrtIoBinding* binding = nullptr;
  TRY_STATUS(Check(api.CreateIoBinding(session_.get(), &binding), "bind"));
  binding_ = Own(library_, binding, &OrtApi::ReleaseIoBinding);
  TRY_STATUS(CheckGraphs());
  return options_.pixels ? LoadKernel() : Status{};
}

// A graph is of one shape, and is found by the rows alone.
Status OrtCudaInstance::CheckGraphs() const {
  if (!options_.cuda_graph) return {};
  for (const TensorInfo& info : tensors_.inputs) {
    const auto others = info.shape.begin() + (batched_ ? 1 : 0);
    if (!info.any_rank && std::all_of(others, info.shape.end(), [](int64_t dim) { return dim >= 0; }))
      continue;
    return Fail(ErrorCode::kUnsupported,
                fmt::format("input '{}' has the shape {}, and a graph is recorded for one shape: leave "
                            "--cuda-graph out, or export the model with fixed dimensions but for the batch",
                            info.name, ToString(info.shape)));
  }
  return {};
}

Status OrtCudaInstance::LoadKernel() {
  kernel_ = TRY(gpu::Kernel::Load(context_, gpu::NormalisePtx(), gpu::kNormaliseKernel));
  const std::vector<float>& table = options_.pixels->table;
  table_ = TRY(gpu::Memory::OnDevice(context_, table.size() * sizeof(float)));
  TRY_STATUS(
      stream_.Upload(table_, reinterpret_cast<const std::byte*>(table.data()), table.size() * sizeof(float)));
  TRY_STATUS(stream_.Mark(kEnd));
  return stream_.Wait(kEnd);
}

Result<std::shared_ptr<OrtSessionOptions>> OrtCudaInstance::MakeOptions(bool refuses_cpu) const {
  const OrtApi& api = library_->api();
  const auto check = [&](OrtStatus* status) { return Check(status, "set up onnxruntime"); };
  auto options = TRY(MakeOrtOptions(library_));
  TRY_STATUS(check(api.SetIntraOpNumThreads(options.get(), 1)));
  if (refuses_cpu)
    TRY_STATUS(check(api.AddSessionConfigEntry(options.get(), kOrtSessionOptionsDisableCPUEPFallback, "1")));
  OrtCUDAProviderOptionsV2* raw = nullptr;
  TRY_STATUS(check(api.CreateCUDAProviderOptions(&raw)));
  const auto cuda = Own(library_, raw, &OrtApi::ReleaseCUDAProviderOptions);
  std::vector<std::pair<const char*, std::string>> settings = {
      {"device_id", fmt::format("{}", context_->ordinal())},
      // Exhaustive search takes hundreds of milliseconds for every new shape.
      {"cudnn_conv_algo_search", "HEURISTIC"},
      {"cudnn_conv_use_max_workspace", "1"},
      {"arena_extend_strategy", "kSameAsRequested"},
      {"do_copy_in_default_stream", "1"},
      {"prefer_nhwc", channels_last_ ? "1" : "0"},
      {"use_tf32", options_.precision == "tf32" ? "1" : "0"},
      {"enable_cuda_graph", options_.cuda_graph ? "1" : "0"}};
  if (options_.gpu_memory_bytes > 0)
    settings.emplace_back("gpu_mem_limit", fmt::format("{}", options_.gpu_memory_bytes));
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : settings) {
    keys.push_back(key);
    values.push_back(value.c_str());
  }
  TRY_STATUS(check(api.UpdateCUDAProviderOptions(raw, keys.data(), values.data(), keys.size())));
  TRY_STATUS(check(api.UpdateCUDAProviderOptionsWithValue(raw, "user_compute_stream", stream_.handle())));
  TRY_STATUS(check(api.SessionOptionsAppendExecutionProvider_CUDA_V2(options.get(), raw)));
  return options;
}

Result<std::shared_ptr<OrtSession>> OrtCudaInstance::Open(const ModelSource& source,
                                                          OrtSessionOptions* options) const {
  const OrtApi& api = library_->api();
  OrtSession* raw = nullptr;
  OrtStatus* const status = source.onnx.empty()
                                ? api.CreateSession(library_->env(), source.path.c_str(), options, &raw)
                                : api.CreateSessionFromArray(library_->env(), source.onnx.data(),
                                                             source.onnx.size(), options, &raw);
  TRY_STATUS(library_->Check(status, source.path, ErrorCode::kInvalidArgument));
  return Own(library_, raw, &OrtApi::ReleaseSession);
}

// Loads the model once more, with its CPU nodes, only to hear where each node goes.
std::string OrtCudaInstance::LeftOver(const ModelSource& source) const {
  const auto options = MakeOptions(false);
  if (!options) return "";
  if (OrtStatus* status =
          library_->api().SetSessionLogSeverityLevel(options->get(), ORT_LOGGING_LEVEL_VERBOSE))
    library_->api().ReleaseStatus(status);
  const OrtLog log;
  static_cast<void>(Open(source, options->get()));
  return NodesOnCpu(log.text());
}

bool OrtCudaInstance::TakesPixels(const Tensor& tensor) const {
  return options_.pixels && tensor.name == options_.pixels->input && tensor.dtype == DType::kUint8;
}

// Memory grows to what the largest batch takes, and stays. Graphs hold the addresses on the device.
Status OrtCudaInstance::Reserve(Place& place, size_t host_bytes, size_t device_bytes) {
  if (place.host.size() < host_bytes) {
    place.host = {};
    place.host = TRY(gpu::Memory::Pinned(context_, host_bytes));
  }
  if (place.device.size() < device_bytes) {
    recorded_.clear();
    place.device = {};
    place.device = TRY(gpu::Memory::OnDevice(context_, device_bytes));
  }
  return {};
}

Result<OrtValuePtr> OrtCudaInstance::OnDevice(const gpu::Memory& memory, const TensorInfo& info,
                                              const Shape& shape) const {
  OrtValue* value = nullptr;
  const auto bytes = static_cast<size_t>(TRY(ElementCount(shape))) * ByteSize(info.dtype);
  TRY_STATUS(Check(library_->api().CreateTensorWithDataAsOrtValue(
                       memory_info_.get(), reinterpret_cast<void*>(memory.address()), bytes, shape.data(),
                       shape.size(), ToOrt(info.dtype), &value),
                   info.name));
  return Own(library_, value, &OrtApi::ReleaseValue);
}

std::optional<Shape> OrtCudaInstance::ShapeOf(size_t output, int64_t rows) const {
  if (!told_[output]) return std::nullopt;
  Shape shape = tensors_.outputs[output].shape;
  if (batched_ && !shape.empty() && shape.front() < 0) shape.front() = rows;
  if (shape.empty() || std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; })) return std::nullopt;
  return shape;
}

// A new size of batch takes cuDNN a tenth of a second and more: a batch between two that are warm is computed
// as the larger. What its other rows hold does not matter, where rows do not see one another.
int64_t OrtCudaInstance::ComputedRows(int64_t rows, const std::vector<size_t>& wanted) const {
  const bool is_batched = batched_ && pads_ && std::ranges::all_of(wanted, [&](size_t output) {
                            const Shape& shape = tensors_.outputs[output].shape;
                            return told_[output] && !shape.empty() && shape.front() < 0;
                          });
  if (!is_batched) return rows;
  int64_t least = rows;
  for (const int size : options_.batches) {
    if (size >= rows && (least == rows || size < least)) least = size;
    if (size == rows) return rows;
  }
  return least;
}

Status OrtCudaInstance::Upload(const std::vector<const Tensor*>& inputs, int64_t rows, int64_t computed) {
  std::vector<const std::byte*> from(inputs.size());  // pinned: the caller's own memory, or a copy
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = *inputs[i];
    const size_t bytes = tensor.data.size();
    Place& place = TakesPixels(tensor) ? pixels_[i] : inputs_[i];
    const bool is_pinned = context_->IsPinned(tensor.data.data());
    TRY_STATUS(Reserve(place, is_pinned ? 0 : bytes,
                       bytes / static_cast<size_t>(rows) * static_cast<size_t>(computed)));
    if (!is_pinned) std::memcpy(place.host.host(), tensor.data.data(), bytes);
    from[i] = is_pinned ? tensor.data.data() : place.host.host();
  }
  TRY_STATUS(stream_.Mark(kBegin));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Place& place = TakesPixels(*inputs[i]) ? pixels_[i] : inputs_[i];
    TRY_STATUS(stream_.Upload(place.device, from[i], inputs[i]->data.size()));
  }
  TRY_STATUS(stream_.Mark(kUploaded));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (TakesPixels(*inputs[i])) TRY_STATUS(Normalise(*inputs[i], i, rows, computed));
  }
  return {};
}

Status OrtCudaInstance::Normalise(const Tensor& pixels, size_t input, int64_t rows, int64_t computed) {
  const PixelInput& how = *options_.pixels;
  unsigned long long count = pixels.data.size();
  TRY_STATUS(Reserve(inputs_[input], 0,
                     count / static_cast<size_t>(rows) * static_cast<size_t>(computed) * sizeof(float)));
  gpu::cuda::Address from = pixels_[input].device.address(), table = table_.address(),
                     to = inputs_[input].device.address();
  auto channels = static_cast<unsigned>(how.channels);
  auto each = static_cast<unsigned>(how.width) * static_cast<unsigned>(how.height);
  unsigned planar = how.planar ? 1 : 0;
  return kernel_.Launch(stream_, count, {&from, &table, &to, &each, &channels, &planar, &count});
}

Status OrtCudaInstance::Bind(const std::vector<const Tensor*>& inputs, const std::vector<size_t>& wanted,
                             int64_t rows) {
  const OrtApi& api = library_->api();
  api.ClearBoundInputs(binding_.get());
  api.ClearBoundOutputs(binding_.get());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& info = tensors_.inputs[i];
    Shape shape = TakesPixels(*inputs[i]) ? info.shape : inputs[i]->shape;
    if (batched_) shape.front() = rows;
    const OrtValuePtr value = TRY(OnDevice(inputs_[i].device, info, shape));
    TRY_STATUS(Check(api.BindInput(binding_.get(), info.name.c_str(), value.get()), info.name));
  }
  for (const size_t index : wanted) {
    const TensorInfo& info = tensors_.outputs[index];
    const auto shape = ShapeOf(index, rows);
    if (!shape) {
      TRY_STATUS(Check(api.BindOutputToDevice(binding_.get(), info.name.c_str(), library_->cpu_memory()),
                       info.name));
      continue;
    }
    const auto bytes = static_cast<size_t>(TRY(ElementCount(*shape))) * ByteSize(info.dtype);
    TRY_STATUS(Reserve(outputs_[index], bytes, bytes));
    const OrtValuePtr value = TRY(OnDevice(outputs_[index].device, info, *shape));
    TRY_STATUS(Check(api.BindOutput(binding_.get(), info.name.c_str(), value.get()), info.name));
  }
  return {};
}

// The library leaves the waiting to us, who do not spin. The number of a graph is that of its rows.
Status OrtCudaInstance::Compute(int64_t rows, Graphs graphs) {
  const OrtApi& api = library_->api();
  if (graphs == Graphs::kRecord) recorded_.insert(rows);
  const int64_t graph = graphs != Graphs::kKernels && recorded_.contains(rows) ? rows : kNoGraph;
  auto& run = run_options_[graph];
  if (!run) {
    OrtRunOptions* raw = nullptr;
    TRY_STATUS(Check(api.CreateRunOptions(&raw), "run"));
    run = Own(library_, raw, &OrtApi::ReleaseRunOptions);
    TRY_STATUS(Check(
        api.AddRunConfigEntry(raw, kOrtRunOptionsConfigDisableSynchronizeExecutionProviders, "1"), "run"));
    if (options_.cuda_graph)
      TRY_STATUS(Check(api.AddRunConfigEntry(raw, kOrtRunOptionsConfigCudaGraphAnnotation,
                                             fmt::format("{}", graph).c_str()),
                       "run"));
  }
  return Check(api.RunWithBinding(session_.get(), run.get(), binding_.get()), "onnxruntime");
}

Status OrtCudaInstance::SpoilOutputs() {
  const auto nobody_records = NobodyRecords();
  for (Place& place : outputs_) {
    if (place.device.size() == 0) continue;
    const std::vector<std::byte> spoilt(place.device.size(), std::byte{0xFF});  // no number, as floats
    if (place.host.size() > 0) std::memset(place.host.host(), 0xFF, place.host.size());
    TRY_STATUS(stream_.Upload(place.device, spoilt.data(), spoilt.size()));
    TRY_STATUS(stream_.Mark(kEnd));
    TRY_STATUS(stream_.Wait(kEnd));
  }
  return {};
}

// Copies an output that the library has put on the host, since its shape was not known before.
Result<Tensor> OrtCudaInstance::Copied(size_t output, OrtValue* value) {
  const OrtApi& api = library_->api();
  OrtTensorTypeAndShapeInfo* facts = nullptr;
  const std::string& name = tensors_.outputs[output].name;
  TRY_STATUS(Check(api.GetTensorTypeAndShape(value, &facts), name));
  const auto owned = Own(library_, facts, &OrtApi::ReleaseTensorTypeAndShapeInfo);
  TensorInfo info = TRY(Describe(*library_, facts));
  void* memory = nullptr;
  TRY_STATUS(Check(api.GetTensorMutableData(value, &memory), name));
  const auto bytes = static_cast<size_t>(TRY(ElementCount(info.shape))) * ByteSize(info.dtype);
  return Tensor{.name = name,
                .dtype = info.dtype,
                .shape = std::move(info.shape),
                .data = Bytes::Copy(std::string_view(static_cast<const char*>(memory), bytes))};
}

Result<std::vector<Tensor>> OrtCudaInstance::Download(const std::vector<size_t>& wanted, int64_t rows) {
  const OrtApi& api = library_->api();
  for (const size_t index : wanted) {
    if (ShapeOf(index, rows))
      TRY_STATUS(stream_.Download(outputs_[index].host.host(), outputs_[index].device,
                                  static_cast<size_t>(*ElementCount(*ShapeOf(index, rows))) *
                                      ByteSize(tensors_.outputs[index].dtype)));
  }
  TRY_STATUS(stream_.Mark(kEnd));
  TRY_STATUS(stream_.Wait(kEnd));
  std::vector<OrtValuePtr> values;
  const bool all_told = std::ranges::all_of(wanted, [&](size_t i) { return ShapeOf(i, rows).has_value(); });
  if (!all_told) {
    TRY_STATUS(Check(api.SynchronizeBoundOutputs(binding_.get()), "onnxruntime"));
    OrtAllocator* allocator = nullptr;
    TRY_STATUS(Check(api.GetAllocatorWithDefaultOptions(&allocator), "get memory"));
    OrtValue** raw = nullptr;
    size_t count = 0;
    TRY_STATUS(Check(api.GetBoundOutputValues(binding_.get(), allocator, &raw, &count), "onnxruntime"));
    for (size_t i = 0; i < count; ++i) values.push_back(Own(library_, raw[i], &OrtApi::ReleaseValue));
    if (raw != nullptr) allocator->Free(allocator, raw);
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const TensorInfo& info = tensors_.outputs[wanted[i]];
    auto shape = ShapeOf(wanted[i], rows);
    if (!shape) {
      if (i >= values.size())
        return Fail(ErrorCode::kInternal, info.name + ": the library gave no such output");
      outputs.push_back(TRY(Copied(wanted[i], values[i].get())));
      continue;
    }
    const auto bytes = static_cast<size_t>(TRY(ElementCount(*shape))) * ByteSize(info.dtype);
    const auto* from = reinterpret_cast<const char*>(outputs_[wanted[i]].host.host());
    outputs.push_back({.name = info.name,
                       .dtype = info.dtype,
                       .shape = *std::move(shape),
                       .data = Bytes::Copy(std::string_view(from, bytes))});
  }
  return outputs;
}

Result<OrtCudaInstance::Answer> OrtCudaInstance::Run(const std::vector<const Tensor*>& inputs,
                                                     const std::vector<size_t>& wanted, Graphs graphs) {
  std::shared_lock nobody_records(Recording(), std::defer_lock);
  std::unique_lock alone(Recording(), std::defer_lock);
  if (graphs == Graphs::kRecord) {
    alone.lock();
  } else {
    nobody_records.lock();
  }
  TRY_STATUS(context_->MakeCurrent());
  const int64_t rows = batched_ ? BatchSize(inputs.front()->shape) : 1;
  if (rows == 0) return Fail(ErrorCode::kInvalidArgument, "a batch of no rows");
  const int64_t filled = ComputedRows(rows, wanted);
  TRY_STATUS(Upload(inputs, rows, filled));
  TRY_STATUS(Bind(inputs, wanted, filled));
  Status computed = Compute(filled, graphs);
  if (!computed && computed.error().message.contains("shape")) {
    // The first dimension of an output is no batch: from now on the library says how large it is.
    for (const size_t index : wanted) {
      const Shape& shape = tensors_.outputs[index].shape;
      if (!shape.empty() && shape.front() < 0) told_[index] = false;
    }
    TRY_STATUS(Bind(inputs, wanted, rows));
    computed = Compute(rows, Graphs::kKernels);
  }
  TRY_STATUS(computed);
  TRY_STATUS(stream_.Mark(kComputed));
  Answer ran{.outputs = TRY(Download(wanted, rows)), .stages = {}};
  ran.stages.upload = TRY(stream_.Between(kBegin, kUploaded));
  ran.stages.compute = TRY(stream_.Between(kUploaded, kComputed));
  ran.stages.download = TRY(stream_.Between(kComputed, kEnd));
  return ran;
}

}  // namespace weir::infer
