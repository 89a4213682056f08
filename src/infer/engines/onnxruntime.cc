#include "infer/engines/onnxruntime.h"

#include <fmt/format.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <semaphore>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "infer/engines/binding.h"
#include "infer/engines/ort_library.h"
#include "infer/engines/quantised.h"
#include "infer/engines/shared_library.h"
#include "infer/engines/strings.h"
#include "infer/engines/thread_share.h"

namespace weir::infer {
namespace {

// The library may hand an input on as an output: the value then views memory that it does not own.
bool Holds(const Bytes& input, const std::byte* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory), begin = reinterpret_cast<uintptr_t>(input.data());
  return at >= begin && at - begin < input.size();
}

class OnnxRuntimeSession final : public Session {
 public:
  struct Loaded {
    OrtLibraryPtr library;
    std::shared_ptr<OrtSession> session;
    std::vector<TensorInfo> inputs;
    std::vector<TensorInfo> outputs;
    std::string precision;
    ThreadShare share;
  };
  OnnxRuntimeSession(Loaded loaded, const Clock& clock)
      : loaded_(std::move(loaded)), clock_(clock), free_streams_(loaded_.share.streams) {}

  const std::vector<TensorInfo>& inputs() const override { return loaded_.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return loaded_.outputs; }
  std::string precision() const override { return loaded_.precision; }
  int threads() const override { return loaded_.share.threads; }
  int streams() const override { return loaded_.share.streams; }
  int callers() const override { return loaded_.share.streams; }

  Result<RunResult> Run(const std::vector<Tensor>& inputs, const std::vector<std::string>& wanted) override;

 private:
  // `data` must outlive the value.
  Result<OrtValuePtr> Give(const Tensor& tensor, const Bytes& data) const;
  Result<OrtValuePtr> GiveStrings(const Tensor& tensor) const;  // a copy
  // `given` is what the inputs lie in.
  Result<Tensor> Take(OrtValuePtr value, const std::string& name, const std::vector<Bytes>& given) const;
  Result<Bytes> TakeStrings(const OrtValue* value, int64_t count, const std::string& name) const;

  const Loaded loaded_;
  const Clock& clock_;
  std::counting_semaphore<>
      free_streams_;  // the library would take any number of callers, each with a thread
};

Result<RunResult> OnnxRuntimeSession::Run(const std::vector<Tensor>& inputs,
                                          const std::vector<std::string>& wanted) {
  const auto bound = TRY(BindInputs(loaded_.inputs, inputs));
  const auto indices = TRY(BindOutputs(loaded_.outputs, wanted));
  std::vector<Bytes> data;
  std::vector<OrtValuePtr> values;
  std::vector<const OrtValue*> given;
  std::vector<const char*> input_names;
  for (const Tensor* tensor : bound) {
    if (tensor == nullptr) continue;
    input_names.push_back(tensor->name.c_str());
    data.push_back(AlignedData(*tensor));
    values.push_back(TRY(Give(*tensor, data.back())));
    given.push_back(values.back().get());
  }
  std::vector<const char*> names;
  for (const size_t index : indices) names.push_back(loaded_.outputs[index].name.c_str());
  std::vector<OrtValue*> got(names.size(), nullptr);

  free_streams_.acquire();
  RunResult result{.outputs = {}, .started = clock_.Now()};
  OrtStatus* const status =
      loaded_.library->api().Run(loaded_.session.get(), nullptr, input_names.data(), given.data(),
                                 given.size(), names.data(), names.size(), got.data());
  free_streams_.release();

  std::vector<OrtValuePtr> owned;
  for (OrtValue* value : got) owned.push_back(Own(loaded_.library, value, &OrtApi::ReleaseValue));
  TRY_STATUS(loaded_.library->Check(status, "onnxruntime"));
  for (size_t i = 0; i < owned.size(); ++i)
    result.outputs.push_back(TRY(Take(std::move(owned[i]), names[i], data)));
  return result;
}

Result<OrtValuePtr> OnnxRuntimeSession::Give(const Tensor& tensor, const Bytes& data) const {
  if (tensor.dtype == DType::kBytes) return GiveStrings(tensor);
  OrtValue* value = nullptr;
  // The library does not write to its inputs; its C interface cannot say so.
  TRY_STATUS(loaded_.library->Check(
      loaded_.library->api().CreateTensorWithDataAsOrtValue(
          loaded_.library->cpu_memory(), const_cast<std::byte*>(data.data()), data.size(),
          tensor.shape.data(), tensor.shape.size(), ToOrt(tensor.dtype), &value),
      tensor.name));
  return Own(loaded_.library, value, &OrtApi::ReleaseValue);
}

// REQUIRES: BindInputs has found that the tensor's data are as many strings as its shape says.
Result<OrtValuePtr> OnnxRuntimeSession::GiveStrings(const Tensor& tensor) const {
  const OrtApi& api = loaded_.library->api();
  const int64_t count = TRY(ElementCount(tensor.shape));
  TRY_STATUS(PackedSize(fmt::format("input '{}'", tensor.name), count, tensor.data.size()));
  OrtAllocator* allocator = nullptr;
  TRY_STATUS(loaded_.library->Check(api.GetAllocatorWithDefaultOptions(&allocator), tensor.name));
  OrtValue* value = nullptr;
  TRY_STATUS(
      loaded_.library->Check(api.CreateTensorAsOrtValue(allocator, tensor.shape.data(), tensor.shape.size(),
                                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value),
                             tensor.name));
  OrtValuePtr owned = Own(loaded_.library, value, &OrtApi::ReleaseValue);
  std::string_view rest = tensor.data.text();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const std::string_view element = TakeString(rest);
    // FillStringTensor ends a string at its first zero byte.
    char* buffer = nullptr;
    TRY_STATUS(loaded_.library->Check(
        api.GetResizedStringTensorElementBuffer(value, i, element.size(), &buffer), tensor.name));
    if (!element.empty()) std::memcpy(buffer, element.data(), element.size());
  }
  return owned;
}

Result<Bytes> OnnxRuntimeSession::TakeStrings(const OrtValue* value, int64_t count,
                                              const std::string& name) const {
  const OrtApi& api = loaded_.library->api();
  size_t content = 0;
  TRY_STATUS(loaded_.library->Check(api.GetStringTensorDataLength(value, &content), name));
  const size_t size = TRY(PackedSize(fmt::format("output '{}'", name), count, content));
  Bytes data = Bytes::AllocateUninitialized(size);
  if (count == 0) return data;
  std::vector<size_t> offsets(static_cast<size_t>(count));
  TRY_STATUS(loaded_.library->Check(api.GetStringTensorContent(value, data.mutable_data() + (size - content),
                                                               content, offsets.data(), offsets.size()),
                                    name));
  PackStrings(data.mutable_span(), offsets);
  return data;
}

Result<Tensor> OnnxRuntimeSession::Take(OrtValuePtr value, const std::string& name,
                                        const std::vector<Bytes>& given) const {
  const OrtApi& api = loaded_.library->api();
  OrtTensorTypeAndShapeInfo* facts = nullptr;
  TRY_STATUS(loaded_.library->Check(api.GetTensorTypeAndShape(value.get(), &facts), name));
  const auto owned = Own(loaded_.library, facts, &OrtApi::ReleaseTensorTypeAndShapeInfo);
  TensorInfo info = TRY(Describe(*loaded_.library, facts));
  const int64_t count = TRY(ElementCount(info.shape));
  if (info.dtype == DType::kBytes) {
    Bytes data = TRY(TakeStrings(value.get(), count, name));
    return Tensor{.name = name, .dtype = info.dtype, .shape = std::move(info.shape), .data = std::move(data)};
  }
  void* memory = nullptr;
  TRY_STATUS(loaded_.library->Check(api.GetTensorMutableData(value.get(), &memory), name));
  const size_t size = static_cast<size_t>(count) * ByteSize(info.dtype);
  auto* const bytes = static_cast<std::byte*>(memory);
  const bool is_given = std::ranges::any_of(given, [&](const Bytes& input) { return Holds(input, bytes); });
  return Tensor{.name = name,
                .dtype = info.dtype,
                .shape = std::move(info.shape),
                .data = is_given ? Bytes::Copy(std::span<const std::byte>(bytes, size))
                                 : Bytes::Wrap(std::move(value), bytes, size)};
}

class OnnxRuntimeEngine final : public Engine {
 public:
  OnnxRuntimeEngine(OrtLibraryPtr library, const Clock& clock)
      : library_(std::move(library)), clock_(clock) {}

  std::string name() const override { return "onnxruntime"; }
  std::string version() const override { return library_->version(); }
  Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) override;

 private:
  Result<std::shared_ptr<OrtSessionOptions>> MakeOptions(const ThreadShare& share) const;

  const OrtLibraryPtr library_;
  const Clock& clock_;
};

Result<std::shared_ptr<Session>> OnnxRuntimeEngine::Load(const ModelSource& source,
                                                         const SessionOptions& options) {
  if (options.precision != "f32") {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("onnxruntime computes at the model's own precision on a CPU, not at '{}': the openvino "
                    "engine has bf16 and f16, and --device cuda:N tf32, f16 and bf16",
                    options.precision));
  }
  const ThreadShare share = TRY(ShareThreads(options, UsableCpus()));
  std::string precision = TRY(PrecisionInForce(source.path, options.precision));
  const auto session_options = TRY(MakeOptions(share));
  OrtSession* raw = nullptr;
  const OrtApi& api = library_->api();
  TRY_STATUS(
      library_->Check(api.CreateSession(library_->env(), source.path.c_str(), session_options.get(), &raw),
                      source.path, ErrorCode::kInvalidArgument));
  auto session = Own(library_, raw, &OrtApi::ReleaseSession);
  OrtTensors tensors = TRY(ReadTensors(library_, raw, source));
  return std::make_shared<OnnxRuntimeSession>(
      OnnxRuntimeSession::Loaded{library_, std::move(session), std::move(tensors.inputs),
                                 std::move(tensors.outputs), std::move(precision), share},
      clock_);
}

Result<std::shared_ptr<OrtSessionOptions>> OnnxRuntimeEngine::MakeOptions(const ThreadShare& share) const {
  const OrtApi& api = library_->api();
  const auto check = [this](OrtStatus* status) { return library_->Check(status, "set up onnxruntime"); };
  auto options = TRY(MakeOrtOptions(library_));
  OrtSessionOptions* const raw = options.get();
  // Each caller is itself one of the threads that compute, and all callers share the pool. Without a pool
  // nothing spins while it waits for work, and with one it stops when a run ends.
  TRY_STATUS(check(api.SetIntraOpNumThreads(raw, share.threads - share.streams + 1)));
  // On CPUs without VNNI the library adds products of int8 weights with saturation, which changes answers.
  // This takes the exact way there, which is slower, and changes nothing elsewhere.
  TRY_STATUS(check(api.AddSessionConfigEntry(raw, kOrtSessionOptionsAvx2PrecisionMode, "1")));
  return options;
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenOnnxRuntime(const Clock& clock) {
  const auto file = TRY(SharedLibrary::Open({.engine = "onnxruntime",
                                             .files = {"libonnxruntime.so.1", "libonnxruntime.so.1.31.1"},
                                             .folder = "onnxruntime/onnxruntime/capi"}));
  return std::make_unique<OnnxRuntimeEngine>(TRY(OrtLibrary::Open(file)), clock);
}

}  // namespace weir::infer
