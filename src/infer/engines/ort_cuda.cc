#include "infer/engines/ort_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/seed.h"
#include "base/thread.h"
#include "infer/engines/binding.h"
#include "infer/engines/busy_union.h"
#include "infer/engines/cuda_libraries.h"
#include "infer/engines/ort_cuda_instance.h"
#include "infer/engines/quantised.h"
#include "infer/half.h"

namespace weir::infer {
namespace {

// An instance and the thread that does everything with it, from loading on. The library keeps handles and
// recorded graphs by thread: on another thread each batch would set them up again.
class Worker {
 public:
  explicit Worker(const std::string& name)
      : thread_(StartThread(ThreadRole::kRecogniser, name, [this](const std::stop_token&) { Work(); })) {}
  // Ends what was begun. Not on its own thread.
  ~Worker() {
    Begin({});
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  OrtCudaInstance& instance() { return *instance_; }
  const OrtCudaInstance& instance() const { return *instance_; }

  // Has the thread do `work`. One at a time; empty: the thread ends.
  using Task = std::move_only_function<void()>;
  void Begin(Task work) {
    {
      MutexLock lock(mutex_);
      work_ = std::move(work);
      is_given_ = true;
    }
    changed_.NotifyOne();
  }
  // Does it and waits for its end.
  Status Do(const std::function<Status()>& work) {
    std::promise<Status> done;
    auto status = done.get_future();
    Begin([&work, done = std::move(done)]() mutable { done.set_value(work()); });
    return status.get();
  }
  Status Load(const OrtLibraryPtr& library, const gpu::ContextPtr& context, const ModelSource& source,
              const SessionOptions& options, bool channels_last) {
    return Do([&]() -> Status {
      instance_ = TRY(OrtCudaInstance::Create(library, context, source, options, channels_last));
      return {};
    });
  }

 private:
  void Work() {
    while (Task work = Next()) work();
    instance_.reset();
  }
  Task Next() {
    MutexLock lock(mutex_);
    while (!is_given_) changed_.Wait(mutex_);
    is_given_ = false;
    return std::exchange(work_, {});
  }

  std::unique_ptr<OrtCudaInstance> instance_;  // the thread's own, once it is loaded
  Mutex mutex_;
  CondVar changed_;
  Task work_ GUARDED_BY(mutex_);
  bool is_given_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the others
};
using Workers = std::vector<std::unique_ptr<Worker>>;

class OrtCudaSession final : public Session {
 public:
  // `context`: of one of the GPUs.
  OrtCudaSession(Workers workers, gpu::ContextPtr context, std::vector<int> gpus, std::string precision,
                 const SessionOptions& options, const Clock& clock)
      : context_(std::move(context)),
        gpus_(std::move(gpus)),
        precision_(std::move(precision)),
        options_(options),
        clock_(clock),
        busy_(gpus_.size()),
        workers_(std::move(workers)) {
    for (const auto& worker : workers_) free_.push_back(worker.get());
  }

  const std::vector<TensorInfo>& inputs() const override { return tensors().inputs; }
  const std::vector<TensorInfo>& outputs() const override { return tensors().outputs; }
  std::string precision() const override { return precision_; }
  int threads() const override { return 0; }
  int streams() const override { return static_cast<int>(workers_.size()); }
  int callers() const override { return streams(); }
  std::vector<int> gpus() const override { return gpus_; }
  std::vector<std::string> gpu_uuids() const override {
    std::vector<std::string> uuids(gpus_.size());
    for (const auto& worker : workers_)
      uuids[PlaceOf(worker->instance())] = worker->instance().context().facts().uuid;
    return uuids;
  }
  std::optional<PixelInput> pixels() const override { return options_.pixels; }
  // Pinned, as long as there is such memory: every GPU reads it by itself.
  Bytes MakeInputMemory(size_t bytes) override {
    struct Owner {
      gpu::Memory memory;
      ~Owner() {
        const auto nobody_records = OrtCudaInstance::NobodyRecords();
        memory = {};
      }
    };
    const auto nobody_records = OrtCudaInstance::NobodyRecords();
    auto pinned = gpu::Memory::Pinned(context_, bytes);
    if (!pinned) return Session::MakeInputMemory(bytes);
    const auto owner = std::make_shared<Owner>(*std::move(pinned));
    return Bytes::Wrap(owner, owner->memory.host(), bytes);
  }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>& wanted) override {
    std::promise<Result<RunResult>> answer;
    auto result = answer.get_future();
    Start(inputs, wanted,
          [answer = std::move(answer)](Result<RunResult> ran) mutable { answer.set_value(std::move(ran)); });
    return result.get();
  }

  bool asynchronous() const override { return true; }
  // The instance that has been free longest takes the call; where none is free, the next that is.
  void Start(std::vector<Tensor> inputs, std::vector<std::string> wanted, Done done) override {
    Asked asked{.inputs = std::move(inputs), .wanted = std::move(wanted), .done = std::move(done)};
    Worker* worker = nullptr;
    {
      MutexLock lock(mutex_);
      if (free_.empty()) return waiting_.push_back(std::move(asked));
      worker = free_.front();
      free_.pop_front();
    }
    worker->Begin([this, worker, asked = std::move(asked)]() mutable { Serve(*worker, std::move(asked)); });
  }

  std::optional<std::string> lost() const override {
    MutexLock lock(mutex_);
    return lost_;
  }
  std::optional<EngineStats> Stats() const override {
    MutexLock lock(mutex_);
    EngineStats stats;
    for (const BusyUnion& busy : busy_) stats.busy.push_back(busy.sum());
    return stats;
  }

 private:
  struct Asked {
    std::vector<Tensor> inputs;
    std::vector<std::string> wanted;
    Done done;
  };

  const OrtTensors& tensors() const { return workers_.front()->instance().tensors(); }

  // The inputs that callers may give: for pixels, those in the place of the model's own input.
  std::vector<TensorInfo> DeclaredFor(const std::vector<Tensor>& given) const {
    std::vector<TensorInfo> declared = inputs();
    if (!options_.pixels) return declared;
    const PixelInput& pixels = *options_.pixels;
    for (TensorInfo& info : declared) {
      const bool is_pixels = std::ranges::any_of(given, [&](const Tensor& tensor) {
        return tensor.name == info.name && tensor.dtype == DType::kUint8 && info.name == pixels.input;
      });
      if (!is_pixels) continue;
      info.dtype = DType::kUint8;
      info.shape = {info.shape.front(), pixels.height, pixels.width, pixels.channels};
    }
    return declared;
  }

  size_t PlaceOf(const OrtCudaInstance& instance) const {
    return static_cast<size_t>(std::ranges::find(gpus_, instance.context().ordinal()) - gpus_.begin());
  }

  // On the thread of `worker`: this call, and those that wait. The worker is free before a call is answered,
  // so that the next call, which the answer may bring, finds it.
  void Serve(Worker& worker, Asked first) {
    std::optional<Asked> asked = std::move(first);
    while (asked) {
      Result<RunResult> result = RunOn(worker.instance(), *asked);
      Done done = std::move(asked->done);
      asked = NextFor(worker);
      done(std::move(result));
    }
  }
  std::optional<Asked> NextFor(Worker& worker) {
    MutexLock lock(mutex_);
    if (waiting_.empty()) {
      free_.push_back(&worker);
      return std::nullopt;
    }
    std::optional<Asked> next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  Result<RunResult> RunOn(OrtCudaInstance& instance, const Asked& asked) {
    if (const auto why = lost()) return Fail(ErrorCode::kInternal, *why);
    const auto bound = TRY(BindInputs(DeclaredFor(asked.inputs), asked.inputs));
    const auto indices = TRY(BindOutputs(outputs(), asked.wanted));
    const auto handed_on = InputsHandedOn(inputs(), outputs());
    std::vector<size_t> computed;
    for (const size_t i : indices) {
      if (!handed_on[i]) {
        computed.push_back(i);
      } else if (bound[*handed_on[i]]->dtype != outputs()[i].dtype) {
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("output '{}' is an input, which comes as pixels: leave --preprocess gpu out",
                                outputs()[i].name));
      }
    }
    const Instant started = clock_.Now();
    auto ran = computed.empty() ? OrtCudaInstance::Answer{} : instance.Run(bound, computed);
    const Status alive = ran ? Status{} : instance.context().Alive();
    {
      MutexLock lock(mutex_);
      const Instant now = clock_.Now();
      if (ran) busy_[PlaceOf(instance)].Add(now - ran->stages.whole(), now);
      if (!alive && !lost_) lost_ = alive.error().message;
    }
    if (!ran) return std::unexpected(alive ? std::move(ran).error() : alive.error());
    RunResult result{.outputs = {}, .started = started, .done = {}, .stages = ran->stages};
    auto next = ran->outputs.begin();
    for (const size_t i : indices)
      result.outputs.push_back(handed_on[i] ? AnswerWith(*bound[*handed_on[i]]) : std::move(*next++));
    return result;
  }

  const gpu::ContextPtr context_;
  const std::vector<int> gpus_;
  const std::string precision_;
  const SessionOptions options_;
  const Clock& clock_;

  mutable Mutex mutex_;
  std::deque<Worker*> free_ GUARDED_BY(mutex_);
  std::deque<Asked> waiting_ GUARDED_BY(mutex_);
  std::vector<BusyUnion> busy_ GUARDED_BY(mutex_);  // of each GPU
  std::optional<std::string> lost_ GUARDED_BY(mutex_);
  const Workers workers_;  // last: their threads use the others
};

// Two, unless the caller asks: one copies its inputs into pinned memory while the other computes.
constexpr int kInstancesEach = 2;

// Inputs of random numbers at a batch of `rows`; nothing where a free dimension is not the batch.
std::optional<std::vector<Tensor>> MadeInputs(const std::vector<TensorInfo>& infos, int64_t rows,
                                              uint64_t seed) {
  Random random = Seed(seed).Stream("device warm-up").MakeRandom();
  std::vector<Tensor> inputs;
  for (const TensorInfo& info : infos) {
    Shape shape = info.shape;
    if (!shape.empty() && shape.front() < 0) shape.front() = rows;
    const auto count = ElementCount(shape);
    if (!count) return std::nullopt;
    Bytes data = Bytes::Allocate(static_cast<size_t>(*count) * ByteSize(info.dtype));
    if (info.dtype == DType::kFp32) {
      for (size_t at = 0; at < data.size(); at += sizeof(float)) {
        const auto value = static_cast<float>(random.Uniform());
        std::memcpy(data.mutable_data() + at, &value, sizeof value);
      }
    }
    inputs.push_back(
        {.name = info.name, .dtype = info.dtype, .shape = std::move(shape), .data = std::move(data)});
  }
  return inputs;
}

using Graphs = OrtCudaInstance::Graphs;
Result<std::vector<Tensor>> RunMade(OrtCudaInstance& instance, int64_t rows, uint64_t seed = 1,
                                    Graphs graphs = Graphs::kKernels) {
  const auto inputs = MadeInputs(instance.tensors().inputs, rows, seed);
  if (!inputs) return std::vector<Tensor>{};
  const auto bound = TRY(BindInputs(instance.tensors().inputs, *inputs));
  const auto indices = TRY(BindOutputs(instance.tensors().outputs, {}));
  return TRY(instance.Run(bound, indices, graphs)).outputs;
}

// The greatest difference between outputs in f32; nothing where none is comparable.
std::optional<double> GreatestDifference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  std::optional<double> greatest;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i].dtype != DType::kFp32 || b[i].dtype != DType::kFp32 || a[i].data.size() != b[i].data.size())
      continue;
    for (size_t at = 0; at < a[i].data.size(); at += sizeof(float)) {
      float x = 0, y = 0;
      std::memcpy(&x, a[i].data.data() + at, sizeof x);
      std::memcpy(&y, b[i].data.data() + at, sizeof y);
      const double difference = std::abs(static_cast<double>(x) - static_cast<double>(y));
      greatest = std::isnan(difference) ? INFINITY : std::max(greatest.value_or(0), difference);
    }
  }
  return greatest;
}

// The greatest magnitude among outputs in f32.
double Greatest(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> zeros = outputs;
  for (Tensor& zero : zeros) zero.data = Bytes::Allocate(zero.data.size());
  return GreatestDifference(outputs, zeros).value_or(0);
}

// Tensor cores take f16 with channels last; in f32 the other order is faster (docs/performance.md). The
// library puts some models wrongly into that order, which a first batch tells: they stay as they are.
Status LoadOn(Worker& worker, const OrtLibraryPtr& library, const gpu::ContextPtr& context,
              const ModelSource& source, const SessionOptions& options) {
  if (options.precision == "f16" || options.precision == "bf16") {
    Status works = worker.Load(library, context, source, options, true);
    if (works)
      works = worker.Do([&]() -> Status {
        TRY_STATUS(RunMade(worker.instance(), 1));
        return {};
      });
    if (works) return {};
  }
  return worker.Load(library, context, source, options, false);
}

constexpr double kRounding = 1e-2;  // of the greatest value; f16 may be summed in another order

bool Agree(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const auto difference = GreatestDifference(a, b);
  return !difference || *difference <= kRounding * std::max(1.0, Greatest(b));
}

// The first run of a size counts, the second records. The third, of other input, then gives what the kernels
// give one by one, or the graph is not to be trusted. REQUIRES: all memory has its size.
Status Record(OrtCudaInstance& instance, int rows) {
  const auto seed = static_cast<uint64_t>(rows) * 2;
  for (int i = 0; i < 2; ++i) TRY_STATUS(RunMade(instance, rows, seed, Graphs::kRecord));
  TRY_STATUS(instance.SpoilOutputs());
  const auto replayed = TRY(RunMade(instance, rows, seed + 1, Graphs::kReplay)),
             direct = TRY(RunMade(instance, rows, seed + 1));
  if (Agree(replayed, direct)) return {};
  return Fail(ErrorCode::kInternal,
              fmt::format("the graph that CUDA recorded gives other answers than the kernels, by {:.2g}: "
                          "leave --cuda-graph out",
                          GreatestDifference(replayed, direct).value_or(0)));
}

// A batch of one row less is computed as this one, unless its answers then depend on what the last row holds.
Status CheckPadding(OrtCudaInstance& instance, const std::vector<int>& batches) {
  const int rows = batches.empty() ? 0 : batches.front();
  if (rows < 3 || std::ranges::find(batches, rows - 1) != batches.end()) return {};
  const auto padded = TRY(RunMade(instance, rows - 1));
  TRY_STATUS(RunMade(instance, rows, 7));  // another last row
  if (Agree(TRY(RunMade(instance, rows - 1)), padded)) return {};
  instance.StopPadding();
  return {};
}

// `batches`: the largest first, whose memory is enough for the others.
Status WarmUp(OrtCudaInstance& instance, const SessionOptions& options, const std::vector<int>& batches) {
  const auto each = [&](auto run) -> Status {
    for (const int rows : batches) {
      if (const Status warm = run(rows); !warm)
        return Context(fmt::format("warm-up with a batch of {}", rows), warm.error());
    }
    return {};
  };
  TRY_STATUS(each([&](int rows) -> Status {
    TRY_STATUS(RunMade(instance, rows));
    return {};
  }));
  TRY_STATUS(CheckPadding(instance, batches));
  return options.cuda_graph ? each([&](int rows) { return Record(instance, rows); }) : Status{};
}

class OrtCudaEngine final : public Engine {
 public:
  OrtCudaEngine(OrtLibraryPtr library, gpu::DriverPtr driver, std::vector<int> ordinals, const Clock& clock)
      : library_(std::move(library)),
        driver_(std::move(driver)),
        ordinals_(std::move(ordinals)),
        clock_(clock) {}

  std::string name() const override { return "onnxruntime"; }
  std::string version() const override { return library_->version() + " (CUDA)"; }
  Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) override;

 private:
  Status CheckMemory(const gpu::Context& context, const ModelSource& source, int instances) const;
  Result<std::string> Compare(const ModelSource& source, const SessionOptions& options,
                              OrtCudaInstance& reduced) const;

  const OrtLibraryPtr library_;
  const gpu::DriverPtr driver_;
  const std::vector<int> ordinals_;
  const Clock& clock_;
};

// Each instance has the weights for itself.
Status OrtCudaEngine::CheckMemory(const gpu::Context& context, const ModelSource& source,
                                  int instances) const {
  std::error_code error;
  const uintmax_t size =
      source.onnx.empty() ? std::filesystem::file_size(source.path, error) : source.onnx.size();
  const int64_t needed = error ? 0 : static_cast<int64_t>(size) * instances;
  const int64_t there = TRY(context.FreeMemory());
  if (there >= needed) return {};
  return Fail(ErrorCode::kUnsupported,
              fmt::format("cuda:{} has {} MiB of memory left and the weights alone take {} ({}): end other "
                          "programs on the card, give fewer instances, or use another device",
                          context.ordinal(), there >> 20, needed >> 20,
                          instances == 1 ? "one instance" : fmt::format("{} instances", instances)));
}

Result<std::string> OrtCudaEngine::Compare(const ModelSource& source, const SessionOptions& options,
                                           OrtCudaInstance& reduced) const {
  ModelSource original = source;
  original.onnx.clear();
  SessionOptions exact = options;
  exact.precision = "f32";
  exact.cuda_graph = false;
  exact.pixels.reset();
  const auto context = TRY(gpu::Context::Retain(driver_, reduced.context().ordinal()));
  const auto reference = TRY(OrtCudaInstance::Create(library_, context, original, exact, false));
  const auto difference = GreatestDifference(TRY(RunMade(*reference, 1)), TRY(RunMade(reduced, 1)));
  if (!difference) return options.precision;
  if (!std::isfinite(*difference))
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: in {} its answers are no numbers: use f32, tf32 or bf16", source.path,
                            options.precision));
  return fmt::format("{} (within {:.2g} of f32 on random input)", options.precision, *difference);
}

Result<std::shared_ptr<Session>> OrtCudaEngine::Load(const ModelSource& source,
                                                     const SessionOptions& options) {
  if (options.precision == "int8")
    return Fail(ErrorCode::kUnsupported,
                "the CUDA provider computes quantised models as float: use f16, or the CPU for int8");
  const bool is_rewritten = options.precision == "f16" || options.precision == "bf16";
  if (options.precision != "f32" && options.precision != "tf32" && !is_rewritten)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("unknown precision '{}': cuda takes f32, tf32, f16 or bf16", options.precision));
  if (is_rewritten == source.onnx.empty())
    return Fail(ErrorCode::kInternal, "the model's graph and its precision do not belong together");
  std::string precision = TRY(PrecisionInForce(source.path, options.precision));
  if (precision != options.precision) precision = options.precision + " (quantised model: float on CUDA)";
  const int each = options.streams > 0 ? options.streams : kInstancesEach;
  std::vector<gpu::ContextPtr> contexts;
  for (const int ordinal : ordinals_) {
    contexts.push_back(TRY(gpu::Context::Retain(driver_, ordinal)));
    TRY_STATUS(CheckMemory(*contexts.back(), source, each));
  }
  // One after the other over the devices, so that those that are free longest lie on different ones.
  Workers workers;
  for (int i = 0; i < each; ++i) {
    for (const gpu::ContextPtr& context : contexts) {
      workers.push_back(std::make_unique<Worker>(fmt::format("{}", workers.size())));
      TRY_STATUS(LoadOn(*workers.back(), library_, context, source, options));
    }
  }
  if (is_rewritten || options.precision == "tf32") {
    TRY_STATUS(workers.front()->Do([&]() -> Status {
      precision = TRY(Compare(source, options, workers.front()->instance()));
      return {};
    }));
  }
  // The largest batch comes first: memory never grows afterwards, and a recorded graph keeps the addresses.
  std::vector<int> batches = options.batches;
  std::ranges::sort(batches, std::greater());
  for (const auto& worker : workers)
    TRY_STATUS(worker->Do([&] { return WarmUp(worker->instance(), options, batches); }));
  return std::make_shared<OrtCudaSession>(std::move(workers), contexts.front(), ordinals_,
                                          std::move(precision), options, clock_);
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenOrtCuda(const Clock& clock, const std::vector<Device>& devices) {
  const auto what = [&] { return "device " + ToString(devices); };
  auto driver = TRY_CONTEXT(gpu::Driver::Open(), what());
  auto ordinals = TRY(FindCudaDevices(*driver, devices));
  const auto libraries = TRY_CONTEXT(OpenCudaLibraries(*driver, ordinals), what());
  auto library = TRY(OrtLibrary::Open(libraries.onnxruntime));
  return std::make_unique<OrtCudaEngine>(std::move(library), std::move(driver), std::move(ordinals), clock);
}

}  // namespace weir::infer
