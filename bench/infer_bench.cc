// What stands between a caller and an inference library: the adapters against the bare C interfaces, the
// Runner, and the emulated accelerator. Times are CPU time of the calling thread, which other work on the
// machine disturbs least.
// An adapter's cost is the difference of Adapter and Bare at the same number of floats.
#include <benchmark/benchmark.h>
#include <onnxruntime_c_api.h>
#include <openvino/c/openvino.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "infer/engine.h"
#include "infer/engines/shared_library.h"
#include "infer/runner.h"
#include "infer/testing/fake_session.h"
#include "infer/testing/tiny_onnx.h"

namespace weir::infer {
namespace {

const SteadyClock kClock;

// One row of `columns` floats through one Identity operator.
std::string IdentityModel(int64_t columns) {
  const std::string folder = std::filesystem::temp_directory_path().string() + "/";
  return testing::SaveTinyOnnx(folder, "weir_bench_" + std::to_string(columns) + ".onnx",
                               {.input_shape = {-1, columns}, .output_shape = {-1, columns}});
}

Tensor Zeros(const TensorInfo& info, int64_t batch = 1) {
  Shape shape = info.shape;
  for (int64_t& size : shape) size = size < 0 ? batch : size;
  const auto count = static_cast<size_t>(ElementCount(shape).value());
  return {.name = info.name,
          .dtype = info.dtype,
          .shape = shape,
          .data = Bytes::Allocate(count * ByteSize(info.dtype))};
}

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return *std::move(result);
}

void Adapter(benchmark::State& state, const char* engine_name) {
  const auto engine = Must(OpenEngine(engine_name, kClock));
  const auto session = Must(engine->Load({.path = IdentityModel(state.range(0))}, {.threads = 1}));
  const std::vector<Tensor> inputs{Zeros(session->inputs()[0])};
  for (auto _ : state) benchmark::DoNotOptimize(Must(session->Run(inputs, {})));
}
BENCHMARK_CAPTURE(Adapter, onnxruntime, "onnxruntime")->Arg(4)->Arg(1000)->Arg(150528);
BENCHMARK_CAPTURE(Adapter, openvino, "openvino")->Arg(4)->Arg(1000)->Arg(150528);

// The least that a program does: the input wrapped once, one call, the output released.
void BareOnnxRuntime(benchmark::State& state) {
  const auto file = Must(SharedLibrary::Open(
      {.engine = "onnxruntime", .files = {"libonnxruntime.so.1"}, .folder = "onnxruntime/onnxruntime/capi"}));
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(file.Find("OrtGetApiBase"));
  const OrtApi& api = *base()->GetApi(ORT_API_VERSION);
  const auto must = [](OrtStatus* status) {
    if (status != nullptr) std::exit(1);
  };
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  OrtSession* session = nullptr;
  OrtMemoryInfo* memory = nullptr;
  OrtValue* input = nullptr;
  must(api.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "bench", &env));
  must(api.CreateSessionOptions(&options));
  must(api.SetIntraOpNumThreads(options, 1));
  must(api.CreateSession(env, IdentityModel(state.range(0)).c_str(), options, &session));
  must(api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  const int64_t shape[] = {1, state.range(0)};
  Bytes data = Bytes::Allocate(static_cast<size_t>(state.range(0)) * sizeof(float));
  must(api.CreateTensorWithDataAsOrtValue(memory, data.mutable_data(), data.size(), shape, 2,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  const char* const input_name = "x";
  const char* const output_name = "y";
  for (auto _ : state) {
    OrtValue* output = nullptr;
    must(api.Run(session, nullptr, &input_name, &input, 1, &output_name, 1, &output));
    api.ReleaseValue(output);
  }
  api.ReleaseValue(input);
  api.ReleaseMemoryInfo(memory);
  api.ReleaseSession(session);
  api.ReleaseSessionOptions(options);
  api.ReleaseEnv(env);
}
BENCHMARK(BareOnnxRuntime)->Arg(4)->Arg(1000)->Arg(150528);

// As OpenVINO's own benchmark_app does: tensors set once, one call.
void BareOpenVino(benchmark::State& state) {
  const auto file = Must(SharedLibrary::Open(
      {.engine = "openvino", .files = {"libopenvino_c.so.2641"}, .folder = "openvino/openvino/libs"}));
#define WEIR_FIND(name) const auto name = reinterpret_cast<decltype(&::name)>(file.Find(#name))
  WEIR_FIND(ov_core_create);
  WEIR_FIND(ov_core_free);
  WEIR_FIND(ov_core_compile_model_from_file);
  WEIR_FIND(ov_compiled_model_free);
  WEIR_FIND(ov_compiled_model_create_infer_request);
  WEIR_FIND(ov_infer_request_set_input_tensor_by_index);
  WEIR_FIND(ov_infer_request_infer);
  WEIR_FIND(ov_infer_request_free);
  WEIR_FIND(ov_tensor_create_from_host_ptr);
  WEIR_FIND(ov_tensor_free);
#undef WEIR_FIND
  const auto must = [](ov_status_e status) {
    if (status != ov_status_e::OK) std::exit(1);
  };
  ov_core_t* core = nullptr;
  ov_compiled_model_t* model = nullptr;
  ov_infer_request_t* request = nullptr;
  ov_tensor_t* input = nullptr;
  must(ov_core_create(&core));
  must(ov_core_compile_model_from_file(core, IdentityModel(state.range(0)).c_str(), "CPU", 4, &model,
                                       "INFERENCE_NUM_THREADS", "1", "INFERENCE_PRECISION_HINT", "f32"));
  must(ov_compiled_model_create_infer_request(model, &request));
  int64_t shape[] = {1, state.range(0)};
  Bytes data = Bytes::Allocate(static_cast<size_t>(state.range(0)) * sizeof(float));
  must(ov_tensor_create_from_host_ptr(ov_element_type_e::F32, {2, shape}, data.mutable_data(), &input));
  must(ov_infer_request_set_input_tensor_by_index(request, 0, input));
  for (auto _ : state) must(ov_infer_request_infer(request));
  ov_tensor_free(input);
  ov_infer_request_free(request);
  ov_compiled_model_free(model);
  ov_core_free(core);
}
BENCHMARK(BareOpenVino)->Arg(4)->Arg(1000)->Arg(150528);

// Items per second of the model file that WEIR_BENCH_MODEL names, all callers busy, two threads: the figure
// to hold against the library's own tools.
void Model(benchmark::State& state, const char* engine_name) {
  const char* const path = std::getenv("WEIR_BENCH_MODEL");
  if (path == nullptr) return state.SkipWithError("set WEIR_BENCH_MODEL to an ONNX file");
  const int streams = static_cast<int>(state.range(0));
  const int64_t batch = state.range(1);
  const auto engine = Must(OpenEngine(engine_name, kClock));
  std::shared_ptr<Session> session;
  StartThread("engine", [&](const std::stop_token&) {
    session = Must(engine->Load({.path = path}, {.threads = 2, .streams = streams}));
  }).join();
  const std::vector<Tensor> inputs{Zeros(session->inputs()[0], batch)};
  constexpr int kRuns = 8;  // of each caller
  for (auto _ : state) {
    std::vector<std::jthread> callers;
    for (int i = 0; i < session->callers(); ++i) {
      callers.push_back(StartThread("engine", [&](const std::stop_token&) {
        for (int k = 0; k < kRuns; ++k) benchmark::DoNotOptimize(Must(session->Run(inputs, {})));
      }));
    }
  }
  state.SetItemsProcessed(state.iterations() * session->callers() * kRuns * batch);
}
BENCHMARK_CAPTURE(Model, onnxruntime, "onnxruntime")->ArgsProduct({{1, 2}, {1, 8}})->UseRealTime();
BENCHMARK_CAPTURE(Model, openvino, "openvino")->ArgsProduct({{1, 2}, {1, 8}})->UseRealTime();

// A call from Submit to its Completion, on an engine that answers at once. Real time: two threads take part.
void RunnerRoundTrip(benchmark::State& state) {
  const auto session = std::make_shared<testing::FakeSession>(
      testing::FakeSession::Options{.answer = [](const auto&) { return RunResult{}; }});
  const auto runner = Must(Runner::Create(session, kClock, {}));
  for (auto _ : state) {
    std::latch done(1);
    Call call;
    call.completion = Completion([&](const Result<Response>&, const Times&) { done.count_down(); });
    runner->Submit(std::move(call));
    done.wait();
  }
}
BENCHMARK(RunnerRoundTrip)->UseRealTime();

// The same with many calls waiting, so that no thread has to be woken for each.
void RunnerThroughput(benchmark::State& state) {
  constexpr int kCalls = 200;
  const auto session = std::make_shared<testing::FakeSession>(
      testing::FakeSession::Options{.answer = [](const auto&) { return RunResult{}; }});
  const auto runner = Must(Runner::Create(session, kClock, {}));
  for (auto _ : state) {
    std::latch done(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      Call call;
      call.completion = Completion([&](const Result<Response>&, const Times&) { done.count_down(); });
      runner->Submit(std::move(call));
    }
    done.wait();
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(RunnerThroughput)->UseRealTime();

// The same on an emulated accelerator that answers at once: no other thread takes part.
void RunnerAtOnce(benchmark::State& state) {
  const auto engine = Must(OpenEngine("emulated:base=0", kClock));
  const ModelSource echo{.inputs = {{.name = "x", .shape = {-1, 16}}},
                         .outputs = {{.name = "y", .shape = {-1, 16}}}};
  const auto session = Must(engine->Load(echo, {}));
  const auto runner = Must(Runner::Create(session, kClock, {.batching = {.max_batch = 8}}));
  const Tensor input = Zeros(session->inputs()[0]);
  int64_t answered = 0;
  for (auto _ : state) {
    Call call;
    call.request.inputs.push_back(input);
    call.completion =
        Completion([&](const Result<Response>& result, const Times&) { answered += result ? 1 : 0; });
    runner->Submit(std::move(call));
  }
  if (answered != state.iterations()) state.SkipWithError("not every call was answered");
}
BENCHMARK(RunnerAtOnce);

// Callers that each send their next call when the answer to the last one has come: on one thread for all, as
// the connections of a server are.
class ClosedLoop {
 public:
  ClosedLoop(Runner& runner, Tensor input, int64_t calls)
      : runner_(runner), input_(std::move(input)), calls_(calls) {}

  // Returns when all calls are answered.
  void Run(int callers) {
    for (int i = 0; i < callers; ++i) Send();
    for (int64_t answered = 0; answered < calls_;) {
      int64_t came = 0;
      {
        MutexLock lock(mutex_);
        while (came_ == 0) changed_.Wait(mutex_);
        came = std::exchange(came_, 0);
      }
      answered += came;
      for (int64_t i = 0; i < came; ++i) Send();
    }
  }

 private:
  void Send() {
    if (sent_ == calls_) return;
    ++sent_;
    Call call;
    call.request.inputs.push_back(input_);
    call.completion = Completion([this](const Result<Response>& result, const Times&) {
      if (!result) Must(Result<int>(std::unexpected(result.error())));
      MutexLock lock(mutex_);
      ++came_;
      changed_.NotifyOne();
    });
    runner_.Submit(std::move(call));
  }

  Runner& runner_;
  const Tensor input_;
  const int64_t calls_;
  int64_t sent_ = 0;  // by the one thread

  Mutex mutex_;
  CondVar changed_;
  int64_t came_ GUARDED_BY(mutex_) = 0;  // answers not yet seen
};

// Rows per second, and CPU time of the whole process where the engine needs it, of 32 rows in flight: as 32
// callers of one row whose calls are put together (0), and as callers of full batches (1).
void Batches(benchmark::State& state, const std::shared_ptr<Session>& session) {
  constexpr int kRows = 32;
  const int batch = static_cast<int>(state.range(0));
  const bool explicit_batches = state.range(1) == 1;
  const int64_t rows = state.range(2);
  const auto runner = Must(Runner::Create(
      session, kClock,
      {.batching = {.max_batch = batch, .max_wait = std::chrono::microseconds(state.range(3))}}));
  const int rows_of_call = explicit_batches ? batch : 1;
  for (auto _ : state) {
    ClosedLoop(*runner, Zeros(session->inputs()[0], rows_of_call), rows / rows_of_call)
        .Run(kRows / rows_of_call);
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

void EmulatedBatches(benchmark::State& state) {
  const auto engine = Must(OpenEngine("emulated:base=1ms,per_item=0.2ms", kClock));
  const ModelSource source{.inputs = {{.name = "x", .shape = {-1, 3, 32, 32}}},
                           .outputs = {{.name = "y", .shape = {-1, 1000}}}};
  Batches(state, Must(engine->Load(source, {})));
}
BENCHMARK(EmulatedBatches)
    ->ArgNames({"batch", "explicit", "rows", "wait_us"})
    ->ArgsProduct({{8, 16, 32}, {0}, {4096}, {0, 500}})
    ->ArgsProduct({{8, 16, 32}, {1}, {4096}, {0}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void OnnxRuntimeBatches(benchmark::State& state) {
  const char* const path = std::getenv("WEIR_BENCH_MODEL");
  if (path == nullptr) return state.SkipWithError("set WEIR_BENCH_MODEL to an ONNX file");
  const auto engine = Must(OpenEngine("onnxruntime", kClock));
  Batches(state, Must(engine->Load({.path = path}, {.threads = 1})));
}
BENCHMARK(OnnxRuntimeBatches)
    ->ArgNames({"batch", "explicit", "rows", "wait_us"})
    ->ArgsProduct({{8, 16, 32}, {0, 1}, {1024}, {0}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// Our own work for an item of 3x224x224 floats that an emulated accelerator computes in no time.
void EmulatedAtOnce(benchmark::State& state) {
  const auto engine = Must(OpenEngine("emulated:base=0", kClock));
  const ModelSource source{.inputs = {{.name = "x", .shape = {-1, 3, 224, 224}}},
                           .outputs = {{.name = "y", .shape = {-1, 1000}}}};
  const auto session = Must(engine->Load(source, {}));
  const std::vector<Tensor> inputs{Zeros(session->inputs()[0])};
  for (auto _ : state) benchmark::DoNotOptimize(Must(session->Run(inputs, {})));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(inputs[0].data.size()));
}
BENCHMARK(EmulatedAtOnce);

// The rate that an emulated accelerator keeps of the rate it was told, with as many callers as it asks for
// and batches of 1; how late its answers come; and the CPU that the pacing burns.
void EmulatedRate(benchmark::State& state) {
  const int64_t rate = state.range(0);
  const Duration cost = std::chrono::nanoseconds(1s) / rate;
  const auto engine =
      Must(OpenEngine("emulated:per_item=" + std::to_string(Microseconds(cost)) + "us", kClock));
  const ModelSource source{.inputs = {{.name = "x", .shape = {-1, 4}}},
                           .outputs = {{.name = "y", .shape = {-1, 3}}}};
  const auto session = Must(engine->Load(source, {}));
  const std::vector<Tensor> inputs{Zeros(session->inputs()[0])};
  const auto callers_count = static_cast<size_t>(session->callers());
  std::vector<std::vector<Duration>> late(callers_count);
  for (auto _ : state) {
    std::vector<std::jthread> callers;
    const Instant begin = kClock.Now();
    for (auto& mine : late) {
      callers.push_back(StartThread("caller", [&](const std::stop_token&) {
        for (int64_t k = 0; k < rate; ++k) {
          const Instant end = *Must(session->Run(inputs, {})).started + cost;
          mine.push_back(kClock.Now() - end);
        }
      }));
    }
    callers.clear();
    const double took = Seconds(kClock.Now() - begin);
    state.counters["kept"] = static_cast<double>(callers_count) / took;
    state.counters["spin_cores"] = Seconds(session->Stats()->spin) / took;
  }
  std::vector<Duration> all;
  for (const auto& mine : late) all.insert(all.end(), mine.begin(), mine.end());
  std::ranges::sort(all);
  state.counters["late_p50_us"] = Microseconds(all[all.size() / 2]);
  state.counters["late_p99_us"] = Microseconds(all[all.size() * 99 / 100]);
}
BENCHMARK(EmulatedRate)->Arg(458)->Arg(5000)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace weir::infer

BENCHMARK_MAIN();
