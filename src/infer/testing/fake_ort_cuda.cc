// ONNX Runtime for CUDA as the tests need it: the library for the CPU, with a CUDA provider that computes
// there on memory that is the host's, as that of the fake driver is. Opened as the program opens the real
// one; WEIR_FAKE_ORT_BASE names the library for the CPU. WEIR_FAKE_ORT_CUDA sets what it does: "oom_at=8"
// fails batches of 8 rows and more ("oom_when=FILE": once that file is there), "left_over=Neg" has no kernel
// for that operator. A row takes half a millisecond of the device's clock.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include "gpu/testing/fake_cuda.h"

namespace {

const OrtApi* real = nullptr;
OrtApi ours;
std::mutex mutex;
bool refuses_cpu = false;                     // of the session options made last; one thread loads at a time
std::map<const OrtIoBinding*, int64_t> rows;  // of the inputs that are bound

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
OrtStatus* ORT_API_CALL Bind(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  OrtTensorTypeAndShapeInfo* facts = nullptr;
  if (OrtStatus* failed = real->GetTensorTypeAndShape(value, &facts)) return failed;
  size_t rank = 0;
  int64_t dims[16] = {1};
  OrtStatus* failed = real->GetDimensionsCount(facts, &rank);
  if (failed == nullptr && rank > 0 && rank <= 16) failed = real->GetDimensions(facts, dims, rank);
  real->ReleaseTensorTypeAndShapeInfo(facts);
  if (failed != nullptr) return failed;
  {
    const std::lock_guard lock(mutex);
    rows[binding] = dims[0];
  }
  return real->BindInput(binding, name, value);
}
OrtStatus* ORT_API_CALL RunBound(OrtSession* session, const OrtRunOptions*,
                                 const OrtIoBinding* binding) noexcept {
  int64_t batch = 1;
  {
    const std::lock_guard lock(mutex);
    batch = rows[binding];
  }
  const std::string most = Setting("oom_at");
  const std::string when = Setting("oom_when");
  const bool is_full = when.empty() || access(when.c_str(), F_OK) == 0;
  if (!most.empty() && is_full && batch >= std::atoll(most.c_str()))
    return Fails("Failed to allocate memory for requested buffer of size 1073741824");
  constexpr double kMsARow = 0.5;
  if (FakeCudaState* state = Driver(); state != nullptr)
    state->now_ms += kMsARow * static_cast<double>(batch);
  return real->RunWithBinding(session, nullptr, binding);
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
  ours.RunWithBinding = RunBound;
  return &ours;
}
const char* ORT_API_CALL Version() noexcept { return "1.31.1-fake"; }
const OrtApiBase fake_base{Api, Version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase() { return &fake_base; }
