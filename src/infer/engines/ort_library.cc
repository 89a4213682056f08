#include "infer/engines/ort_library.h"

#include <fmt/format.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <utility>

#include "infer/engines/binding.h"

namespace weir::infer {
namespace {

static_assert(ORT_API_VERSION == 21, "the library is asked for the version of these headers");

thread_local OrtLog* log_of_thread = nullptr;

void ORT_API_CALL KeepLog(void*, OrtLoggingLevel, const char*, const char*, const char*,
                          const char* message) {
  if (log_of_thread != nullptr) log_of_thread->Add(message);
}

constexpr std::pair<ONNXTensorElementDataType, DType> kTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DType::kBool},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DType::kUint8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DType::kUint16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DType::kUint32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DType::kUint64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DType::kInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DType::kInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DType::kInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DType::kInt64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DType::kFp16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DType::kBf16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DType::kFp32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DType::kFp64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, DType::kBytes},
};

Result<DType> FromOrt(ONNXTensorElementDataType type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  return Fail(ErrorCode::kUnsupported,
              fmt::format("element type {} of onnxruntime is not served", static_cast<int>(type)));
}

// How the library tells of one side of a session, its inputs or its outputs.
struct Side {
  decltype(OrtApi::SessionGetInputCount) count;
  decltype(OrtApi::SessionGetInputName) name;
  decltype(OrtApi::SessionGetInputTypeInfo) type;
};

Result<std::string> ReadName(const OrtLibrary& library, const OrtSession* session, const Side& side,
                             size_t index) {
  OrtAllocator* allocator = nullptr;
  TRY_STATUS(library.Check(library.api().GetAllocatorWithDefaultOptions(&allocator), "get memory"));
  char* name = nullptr;
  TRY_STATUS(library.Check(side.name(session, index, allocator, &name), "read a tensor's name"));
  std::string copy = name;
  allocator->Free(allocator, name);
  return copy;
}

// kUnsupported for what cannot be sent or received.
Result<TensorInfo> ReadInfo(const OrtLibraryPtr& library, const OrtSession* session, const Side& side,
                            size_t index) {
  std::string name = TRY(ReadName(*library, session, side, index));
  OrtTypeInfo* type = nullptr;
  TRY_STATUS(library->Check(side.type(session, index, &type), name));
  const auto owned = Own(library, type, &OrtApi::ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* facts = nullptr;
  TRY_STATUS(library->Check(library->api().CastTypeInfoToTensorInfo(type, &facts), name));
  if (facts == nullptr) return Fail(ErrorCode::kUnsupported, fmt::format("'{}' is not a tensor", name));
  TensorInfo info = TRY_CONTEXT(Describe(*library, facts), fmt::format("'{}'", name));
  info.name = std::move(name);
  return info;
}

Result<std::vector<TensorInfo>> ReadInputs(const OrtLibraryPtr& library, const OrtSession* session,
                                           const std::vector<TensorInfo>& declared) {
  const OrtApi& api = library->api();
  const Side own{api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo};
  const Side filled{api.SessionGetOverridableInitializerCount, api.SessionGetOverridableInitializerName,
                    api.SessionGetOverridableInitializerTypeInfo};
  std::vector<TensorInfo> infos;
  size_t count = 0;
  TRY_STATUS(library->Check(own.count(session, &count), "count the tensors"));
  for (size_t i = 0; i < count; ++i) infos.push_back(TRY(ReadInfo(library, session, own, i)));
  TRY_STATUS(library->Check(filled.count(session, &count), "count the tensors"));
  for (size_t i = 0; i < count; ++i) {
    const std::string name = TRY(ReadName(*library, session, filled, i));
    const auto wanted = std::ranges::find(declared, name, &TensorInfo::name);
    if (wanted == declared.end()) continue;
    infos.push_back(TRY(ReadInfo(library, session, filled, i)));
    infos.back().optional = wanted->optional;
  }
  TakeDeclaredShapes(declared, infos);
  return infos;
}

Result<std::vector<TensorInfo>> ReadOutputs(const OrtLibraryPtr& library, const OrtSession* session,
                                            const std::vector<TensorInfo>& declared) {
  const OrtApi& api = library->api();
  const Side side{api.SessionGetOutputCount, api.SessionGetOutputName, api.SessionGetOutputTypeInfo};
  std::vector<TensorInfo> infos;
  size_t count = 0;
  TRY_STATUS(library->Check(side.count(session, &count), "count the tensors"));
  Status left_out;
  for (size_t i = 0; i < count; ++i) {
    auto info = ReadInfo(library, session, side, i);
    if (info) {
      infos.push_back(*std::move(info));
    } else if (info.error().code == ErrorCode::kUnsupported) {
      left_out = std::unexpected(std::move(info).error());
    } else {
      return std::unexpected(std::move(info).error());
    }
  }
  if (infos.empty()) TRY_STATUS(left_out);
  TakeDeclaredShapes(declared, infos);
  return infos;
}

}  // namespace

OrtLog::OrtLog() { log_of_thread = this; }
OrtLog::~OrtLog() { log_of_thread = nullptr; }

Result<OrtLibraryPtr> OrtLibrary::Open(const SharedLibrary& file) {
  using GetApiBase = const OrtApiBase* (*)();
  const auto get_api_base = reinterpret_cast<GetApiBase>(file.Find("OrtGetApiBase"));
  const OrtApiBase* const base = get_api_base == nullptr ? nullptr : get_api_base();
  const OrtApi* const api = base == nullptr ? nullptr : base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "engine onnxruntime: {} does not offer version {} of its interface: install 1.{} or later "
            "with `./dev setup`",
            file.path(), ORT_API_VERSION, ORT_API_VERSION));
  }
  const std::shared_ptr<OrtLibrary> library(new OrtLibrary(api, base->GetVersionString()));
  TRY_STATUS(library->Prepare());
  return library;
}

Status OrtLibrary::Prepare() {
  TRY_STATUS(Check(api_->CreateEnvWithCustomLogger(KeepLog, nullptr, ORT_LOGGING_LEVEL_FATAL, "weir", &env_),
                   "start onnxruntime"));
  OrtMemoryInfo* info = nullptr;
  TRY_STATUS(
      Check(api_->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info), "start onnxruntime"));
  cpu_memory_ = {info, api_->ReleaseMemoryInfo};
  return {};
}

Status OrtLibrary::Check(OrtStatus* status, std::string_view what, ErrorCode otherwise) const {
  if (status == nullptr) return {};
  const OrtErrorCode code = api_->GetErrorCode(status);
  std::string words = fmt::format("{}: {}", what, api_->GetErrorMessage(status));
  api_->ReleaseStatus(status);
  switch (code) {
    case ORT_NO_SUCHFILE:
      return Fail(ErrorCode::kNotFound, std::move(words));
    case ORT_INVALID_ARGUMENT:
      return Fail(ErrorCode::kInvalidArgument, std::move(words));
    case ORT_INVALID_PROTOBUF:
    case ORT_INVALID_GRAPH:
    case ORT_NO_MODEL:
      return Fail(ErrorCode::kCorrupt, std::move(words));
    case ORT_NOT_IMPLEMENTED:
      return Fail(ErrorCode::kUnsupported, std::move(words));
    default:
      return Fail(otherwise, std::move(words));
  }
}

ONNXTensorElementDataType ToOrt(DType dtype) {
  for (const auto& [theirs, ours] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

// Returns the type and shape in `facts`; the name is left empty.
Result<TensorInfo> Describe(const OrtLibrary& library, const OrtTensorTypeAndShapeInfo* facts) {
  const OrtApi& api = library.api();
  ONNXTensorElementDataType type{};
  size_t rank = 0;
  TRY_STATUS(library.Check(api.GetTensorElementType(facts, &type), "read a tensor's type"));
  TRY_STATUS(library.Check(api.GetDimensionsCount(facts, &rank), "read a tensor's rank"));
  TensorInfo info{.name = {}, .dtype = TRY(FromOrt(type)), .shape = Shape(rank)};
  TRY_STATUS(library.Check(api.GetDimensions(facts, info.shape.data(), rank), "read a tensor's shape"));
  return info;
}

Result<OrtTensors> ReadTensors(const OrtLibraryPtr& library, const OrtSession* session,
                               const ModelSource& source) {
  constexpr std::string_view kWhat = "onnxruntime";
  return OrtTensors{.inputs = TRY_CONTEXT(ReadInputs(library, session, source.inputs), kWhat),
                    .outputs = TRY_CONTEXT(ReadOutputs(library, session, source.outputs), kWhat)};
}

Result<std::shared_ptr<OrtSessionOptions>> MakeOrtOptions(const OrtLibraryPtr& library) {
  const OrtApi& api = library->api();
  const auto check = [&](OrtStatus* status) { return library->Check(status, "set up onnxruntime"); };
  OrtSessionOptions* raw = nullptr;
  TRY_STATUS(check(api.CreateSessionOptions(&raw)));
  auto options = Own(library, raw, &OrtApi::ReleaseSessionOptions);
  TRY_STATUS(check(api.SetSessionGraphOptimizationLevel(raw, ORT_ENABLE_ALL)));
  TRY_STATUS(check(api.SetSessionExecutionMode(raw, ORT_SEQUENTIAL)));
  TRY_STATUS(check(api.SetInterOpNumThreads(raw, 1)));
  TRY_STATUS(check(api.AddSessionConfigEntry(raw, kOrtSessionOptionsConfigForceSpinningStop, "1")));
  return options;
}

}  // namespace weir::infer
