// ONNX Runtime for CUDA as the tests need it: the library for the CPU, with a CUDA provider that computes
// there on memory that is the host's, as that of the fake driver is. Opened as the program opens the real
// one; WEIR_FAKE_ORT_BASE names the library for the CPU. WEIR_FAKE_ORT_CUDA sets what it does: "oom_at=8"
// fails batches of 8 rows and more ("oom_when=FILE": once that file is there), "left_over=Neg" has no kernel
// for that operator. A row takes half a millisecond of the device's clock.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/testing/fake_cuda.h"

namespace {

const OrtApi* real = nullptr;
OrtApi ours;
std::mutex mutex;
bool refuses_cpu = false;  // of the session options made last; one thread loads at a time
// A tensor that is bound, as it is found again.
struct Bound {
  std::string name;
  void* memory = nullptr;
  size_t bytes = 0;
  std::vector<int64_t> dims;
  ONNXTensorElementDataType type{};
  bool is_output = false;
};
std::map<const OrtIoBinding*, std::vector<Bound>> bound;
struct Graph {
  int runs = 0;
  std::vector<Bound> tensors;
};
std::map<std::pair<const OrtSession*, std::string>, Graph> graphs;  // by their number
std::map<const OrtRunOptions*, std::string> numbers;                // of the graphs that runs ask for

std::string Setting(const std::string& name) {
  const char* text = std::getenv("WEIR_FAKE_ORT_CUDA");
  std::istringstream stream(text == nullptr ? "" : text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (part.starts_with(name + "=")) return part.substr(name.size() + 1);
  }
  return "";
}

FakeCudaState* Driver() {
  static FakeCudaState* const state = []() -> FakeCudaState* {
    const char* named = std::getenv("WEIR_FAKE_CUDA_LIBRARY");
    void* library = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW);
    auto* function =
        library == nullptr ? nullptr : reinterpret_cast<FakeCudaFunction*>(dlsym(library, "FakeCuda"));
    return function == nullptr ? nullptr : function();
  }();
  return state;
}

OrtStatus* Fails(const std::string& words) { return real->CreateStatus(ORT_FAIL, words.c_str()); }

struct CudaOptions {
  std::map<std::string, std::string> values;
  void* stream = nullptr;
};

OrtStatus* ORT_API_CALL CreateCuda(OrtCUDAProviderOptionsV2** out) noexcept {
  *out = reinterpret_cast<OrtCUDAProviderOptionsV2*>(new CudaOptions);
  return nullptr;
}
void ORT_API_CALL ReleaseCuda(OrtCUDAProviderOptionsV2* options) noexcept {
  delete reinterpret_cast<CudaOptions*>(options);
}
OrtStatus* ORT_API_CALL UpdateCuda(OrtCUDAProviderOptionsV2* options, const char* const* keys,
                                   const char* const* values, size_t count) noexcept {
  static constexpr const char* kKnown[] = {"device_id",
                                           "cudnn_conv_algo_search",
                                           "cudnn_conv_use_max_workspace",
                                           "arena_extend_strategy",
                                           "do_copy_in_default_stream",
                                           "prefer_nhwc",
                                           "use_tf32",
                                           "enable_cuda_graph",
                                           "gpu_mem_limit"};
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    for (const char* key : kKnown) known = known || std::strcmp(key, keys[i]) == 0;
    if (!known) return Fails(std::string("Unknown provider option: \"") + keys[i] + "\"");
    reinterpret_cast<CudaOptions*>(options)->values[keys[i]] = values[i];
  }
  return nullptr;
}
OrtStatus* ORT_API_CALL UpdateCudaValue(OrtCUDAProviderOptionsV2* options, const char* key,
                                        void* value) noexcept {
  if (std::strcmp(key, "user_compute_stream") != 0) return Fails("Unknown provider option");
  reinterpret_cast<CudaOptions*>(options)->stream = value;
  return nullptr;
}
OrtStatus* ORT_API_CALL AppendCuda(OrtSessionOptions*, const OrtCUDAProviderOptionsV2* options) noexcept {
  const auto& cuda = *reinterpret_cast<const CudaOptions*>(options);
  if (cuda.stream == nullptr) return Fails("the fake wants a stream of the caller's");
  if (!cuda.values.contains("use_tf32")) return Fails("the fake wants to be told of TF32");
  const auto last = cuda.values.find("prefer_nhwc");
  if (last != cuda.values.end() && last->second == "1" && !Setting("channels_first").empty())
    return Fails("Input channels C is not equal to kernel channels * group");
  return nullptr;
}
OrtStatus* ORT_API_CALL AddEntry(OrtSessionOptions* options, const char* key, const char* value) noexcept {
  if (std::strcmp(key, "session.disable_cpu_ep_fallback") != 0)
    return real->AddSessionConfigEntry(options, key, value);
  refuses_cpu = true;
  return nullptr;
}

// The real library says so of nodes that no kernel of its provider takes, and logs where each node goes.
OrtStatus* RefuseLeftOver(const std::string& model) {
  const std::string operation = Setting("left_over");
  const bool is_refusal = refuses_cpu;
  refuses_cpu = false;
  if (operation.empty() || model.find(operation) == std::string::npos || !is_refusal) return nullptr;
  return Fails(
      "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU "
      "EP has been explicitly disabled by the user.");
}
OrtStatus* ORT_API_CALL Create(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                               OrtSession** out) noexcept {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (OrtStatus* refused = RefuseLeftOver(bytes.str())) return refused;
  return real->CreateSession(env, path, options, out);
}
OrtStatus* ORT_API_CALL CreateFromArray(const OrtEnv* env, const void* data, size_t size,
                                        const OrtSessionOptions* options, OrtSession** out) noexcept {
  if (OrtStatus* refused = RefuseLeftOver({static_cast<const char*>(data), size})) return refused;
  return real->CreateSessionFromArray(env, data, size, options, out);
}
OrtStatus* ORT_API_CALL MemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType memory,
                                   OrtMemoryInfo** out) noexcept {
  if (std::strcmp(name, "Cuda") != 0) return real->CreateMemoryInfo(name, type, id, memory, out);
  return real->CreateCpuMemoryInfo(type, memory, out);
}
OrtStatus* Remember(const OrtIoBinding* binding, const char* name, const OrtValue* value, bool is_output) {
  OrtTensorTypeAndShapeInfo* facts = nullptr;
  if (OrtStatus* failed = real->GetTensorTypeAndShape(value, &facts)) return failed;
  Bound tensor{.name = name, .is_output = is_output};
  size_t rank = 0, elements = 0;
  OrtStatus* failed = real->GetDimensionsCount(facts, &rank);
  tensor.dims.resize(rank);
  if (failed == nullptr) failed = real->GetDimensions(facts, tensor.dims.data(), rank);
  if (failed == nullptr) failed = real->GetTensorElementType(facts, &tensor.type);
  if (failed == nullptr) failed = real->GetTensorShapeElementCount(facts, &elements);
  real->ReleaseTensorTypeAndShapeInfo(facts);
  if (failed == nullptr) failed = real->GetTensorMutableData(const_cast<OrtValue*>(value), &tensor.memory);
  const bool is_wide = tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ||
                       tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE ||
                       tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
  tensor.bytes = elements * (is_wide ? 8 : 4);
  const std::lock_guard lock(mutex);
  bound[binding].push_back(std::move(tensor));
  return failed;
}
OrtStatus* ORT_API_CALL Bind(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  if (OrtStatus* failed = Remember(binding, name, value, false)) return failed;
  return real->BindInput(binding, name, value);
}
OrtStatus* ORT_API_CALL BindOut(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  if (OrtStatus* failed = Remember(binding, name, value, true)) return failed;
  return real->BindOutput(binding, name, value);
}
void ORT_API_CALL ClearInputs(OrtIoBinding* binding) noexcept {
  {
    const std::lock_guard lock(mutex);
    bound[binding].clear();
  }
  real->ClearBoundInputs(binding);
}
OrtStatus* ORT_API_CALL AddRunEntry(OrtRunOptions* options, const char* key, const char* value) noexcept {
  if (std::strcmp(key, "gpu_graph_id") == 0) {
    const std::lock_guard lock(mutex);
    numbers[options] = value;
  }
  return real->AddRunConfigEntry(options, key, value);
}

OrtStatus* RunOn(OrtSession* session, const std::vector<Bound>& tensors) {
  OrtMemoryInfo* place = nullptr;
  OrtIoBinding* binding = nullptr;
  if (OrtStatus* failed = real->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &place))
    return failed;
  OrtStatus* failed = real->CreateIoBinding(session, &binding);
  std::vector<OrtValue*> values;
  for (const Bound& tensor : tensors) {
    OrtValue* value = nullptr;
    if (failed == nullptr)
      failed = real->CreateTensorWithDataAsOrtValue(place, tensor.memory, tensor.bytes, tensor.dims.data(),
                                                    tensor.dims.size(), tensor.type, &value);
    if (failed != nullptr) break;
    values.push_back(value);
    failed = tensor.is_output ? real->BindOutput(binding, tensor.name.c_str(), value)
                              : real->BindInput(binding, tensor.name.c_str(), value);
  }
  if (failed == nullptr) failed = real->RunWithBinding(session, nullptr, binding);
  for (OrtValue* value : values) real->ReleaseValue(value);
  if (binding != nullptr) real->ReleaseIoBinding(binding);
  real->ReleaseMemoryInfo(place);
  return failed;
}

OrtStatus* Record(OrtSession* session, const OrtIoBinding* binding) {
  FakeCudaState* const driver = Driver();
  if (driver == nullptr) return real->RunWithBinding(session, nullptr, binding);
  driver->spoilt = false;
  driver->recording_thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  OrtStatus* const failed = real->RunWithBinding(session, nullptr, binding);
  driver->recording_thread = 0;
  if (failed == nullptr && driver->spoilt)
    return Fails("CUDA failure 901: operation failed due to a previous error during capture");
  return failed;
}

OrtStatus* ORT_API_CALL RunBound(OrtSession* session, const OrtRunOptions* options,
                                 const OrtIoBinding* binding) noexcept {
  std::vector<Bound> replayed;
  int64_t batch = 1;
  bool is_second = false;
  {
    const std::lock_guard lock(mutex);
    const std::vector<Bound>& now = bound[binding];
    if (!now.empty() && !now.front().dims.empty()) batch = now.front().dims.front();
    const auto number = numbers.find(options);
    if (number != numbers.end() && number->second != "-1") {
      Graph& graph = graphs[{session, number->second}];
      is_second = ++graph.runs == 2;
      if (is_second) graph.tensors = now;
      if (graph.runs > 2) replayed = graph.tensors;
    }
  }
  const std::string most = Setting("oom_at");
  const std::string when = Setting("oom_when");
  const bool is_full = when.empty() || access(when.c_str(), F_OK) == 0;
  if (!most.empty() && is_full && batch >= std::atoll(most.c_str()))
    return Fails("Failed to allocate memory for requested buffer of size 1073741824");
  constexpr double kMsARow = 0.5;
  if (FakeCudaState* state = Driver(); state != nullptr)
    state->now_ms += kMsARow * static_cast<double>(batch);
  if (!replayed.empty()) return RunOn(session, replayed);
  return is_second ? Record(session, binding) : real->RunWithBinding(session, nullptr, binding);
}
void ORT_API_CALL Release(OrtSession* session) noexcept {
  {
    const std::lock_guard lock(mutex);
    std::erase_if(graphs, [&](const auto& graph) { return graph.first.first == session; });
  }
  // The library's destructor of graphs throws where the device does not answer any more.
  if (FakeCudaState* state = Driver(); state != nullptr && state->stuck != 0) std::abort();
  real->ReleaseSession(session);
}

const OrtApi* ORT_API_CALL Api(uint32_t version) noexcept {
  const char* base = std::getenv("WEIR_FAKE_ORT_BASE");
  void* library = base == nullptr ? nullptr : dlopen(base, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  using GetBase = const OrtApiBase* (*)();
  real = reinterpret_cast<GetBase>(dlsym(library, "OrtGetApiBase"))()->GetApi(version);
  if (real == nullptr) return nullptr;
  std::memcpy(static_cast<void*>(&ours), real, sizeof ours);
  ours.CreateCUDAProviderOptions = CreateCuda;
  ours.ReleaseCUDAProviderOptions = ReleaseCuda;
  ours.UpdateCUDAProviderOptions = UpdateCuda;
  ours.UpdateCUDAProviderOptionsWithValue = UpdateCudaValue;
  ours.SessionOptionsAppendExecutionProvider_CUDA_V2 = AppendCuda;
  ours.AddSessionConfigEntry = AddEntry;
  ours.CreateSession = Create;
  ours.CreateSessionFromArray = CreateFromArray;
  ours.CreateMemoryInfo = MemoryInfo;
  ours.BindInput = Bind;
  ours.BindOutput = BindOut;
  ours.ClearBoundInputs = ClearInputs;
  ours.AddRunConfigEntry = AddRunEntry;
  ours.ReleaseSession = Release;
  ours.RunWithBinding = RunBound;
  return &ours;
}
const char* ORT_API_CALL Version() noexcept { return "1.31.1-fake"; }
const OrtApiBase fake_base{Api, Version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase() { return &fake_base; }
