#include "infer/engines/openvino.h"

#include <fmt/format.h>
#include <openvino/c/openvino.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "infer/engines/binding.h"
#include "infer/engines/quantised.h"
#include "infer/engines/shared_library.h"
#include "infer/engines/thread_share.h"

namespace weir::infer {
namespace {

// The functions of the C API that are used, each under its own name.
#define WEIR_OPENVINO_FUNCTIONS(X)               \
  X(ov_get_last_err_msg)                         \
  X(ov_free)                                     \
  X(ov_get_openvino_version)                     \
  X(ov_version_free)                             \
  X(ov_core_create)                              \
  X(ov_core_free)                                \
  X(ov_core_compile_model_from_file)             \
  X(ov_compiled_model_free)                      \
  X(ov_compiled_model_inputs_size)               \
  X(ov_compiled_model_input_by_index)            \
  X(ov_compiled_model_input_by_name)             \
  X(ov_compiled_model_output_by_name)            \
  X(ov_compiled_model_outputs_size)              \
  X(ov_compiled_model_output_by_index)           \
  X(ov_compiled_model_get_property)              \
  X(ov_compiled_model_create_infer_request)      \
  X(ov_port_get_any_name)                        \
  X(ov_port_get_element_type)                    \
  X(ov_port_get_partial_shape)                   \
  X(ov_output_const_port_free)                   \
  X(ov_partial_shape_free)                       \
  X(ov_infer_request_free)                       \
  X(ov_infer_request_set_input_tensor_by_index)  \
  X(ov_infer_request_set_output_tensor_by_index) \
  X(ov_infer_request_get_output_tensor_by_index) \
  X(ov_infer_request_infer)                      \
  X(ov_tensor_create_from_host_ptr)              \
  X(ov_tensor_get_shape)                         \
  X(ov_tensor_data)                              \
  X(ov_tensor_free)                              \
  X(ov_shape_free)

// Thread-safe.
class Library {
 public:
  static Result<std::shared_ptr<const Library>> Open();

#define WEIR_DECLARE(name) decltype(&::name) name = nullptr;
  WEIR_OPENVINO_FUNCTIONS(WEIR_DECLARE)
#undef WEIR_DECLARE
  std::string version;

  // `what` is said first, then the library's own words.
  Status Check(ov_status_e status, std::string_view what, ErrorCode code = ErrorCode::kInternal) const;

 private:
  Status Bind(const SharedLibrary& file);
};
using LibraryPtr = std::shared_ptr<const Library>;

// An object of the library, which it keeps alive.
template <typename T>
std::shared_ptr<T> Own(const LibraryPtr& library, T* object, void (*Library::*release)(T*)) {
  return {object, [library, release](T* p) { (library.get()->*release)(p); }};
}

// The library's scheduler opens one of its parts in a way that ends a program with sanitizers, unless it is
// told.
void AllowSanitizers() {
#ifdef WEIR_SANITIZED
  setenv("TBB_ENABLE_SANITIZERS", "1", 0);
#endif
}

Result<LibraryPtr> Library::Open() {
  AllowSanitizers();
  const auto file = TRY(SharedLibrary::Open({.engine = "openvino",
                                             .files = {"libopenvino_c.so.2641", "libopenvino_c.so"},
                                             .folder = "openvino/openvino/libs"}));
  const auto library = std::make_shared<Library>();
  TRY_STATUS(library->Bind(file));
  ov_version_t version{};
  TRY_STATUS(library->Check(library->ov_get_openvino_version(&version), "engine openvino"));
  library->version = version.buildNumber;
  library->ov_version_free(&version);
  return library;
}

Status Library::Bind(const SharedLibrary& file) {
#define WEIR_BIND(name)                                                                                    \
  name = reinterpret_cast<decltype(name)>(file.Find(#name));                                               \
  if (name == nullptr) {                                                                                   \
    return Fail(ErrorCode::kUnsupported,                                                                   \
                fmt::format("engine openvino: {} has no {}: install the right version with `./dev setup`", \
                            file.path(), #name));                                                          \
  }
  WEIR_OPENVINO_FUNCTIONS(WEIR_BIND)
#undef WEIR_BIND
  return {};
}

Status Library::Check(ov_status_e status, std::string_view what, ErrorCode code) const {
  if (status == ov_status_e::OK) return {};
  const char* const told = ov_get_last_err_msg();
  std::string words = told == nullptr ? fmt::format("status {}", static_cast<int>(status)) : told;
  if (told != nullptr) ov_free(told);
  words.erase(words.find_last_not_of('\n') + 1);
  for (char& c : words) c = c == '\n' ? ' ' : c;
  return Fail(code, fmt::format("{}: {}", what, words));
}

constexpr std::pair<ov_element_type_e, DType> kTypes[] = {
    {ov_element_type_e::BOOLEAN, DType::kBool}, {ov_element_type_e::U8, DType::kUint8},
    {ov_element_type_e::U16, DType::kUint16},   {ov_element_type_e::U32, DType::kUint32},
    {ov_element_type_e::U64, DType::kUint64},   {ov_element_type_e::I8, DType::kInt8},
    {ov_element_type_e::I16, DType::kInt16},    {ov_element_type_e::I32, DType::kInt32},
    {ov_element_type_e::I64, DType::kInt64},    {ov_element_type_e::F16, DType::kFp16},
    {ov_element_type_e::BF16, DType::kBf16},    {ov_element_type_e::F32, DType::kFp32},
    {ov_element_type_e::F64, DType::kFp64},
};

Result<DType> FromOpenVino(ov_element_type_e type) {
  for (const auto& [theirs, ours] : kTypes) {
    if (theirs == type) return ours;
  }
  return Fail(ErrorCode::kUnsupported,
              type == ov_element_type_e::STRING
                  ? "tensors of strings are not served"
                  : fmt::format("element type {} of openvino is not served", static_cast<int>(type)));
}

ov_element_type_e ToOpenVino(DType dtype) {
  for (const auto& [theirs, ours] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return ov_element_type_e::DYNAMIC;
}

using TensorPtr = std::shared_ptr<ov_tensor_t>;

// A view of `data`, which must outlive its use.
Result<TensorPtr> View(const LibraryPtr& library, DType dtype, const Shape& shape, const std::byte* data) {
  const ov_shape_t dims{static_cast<int64_t>(shape.size()), const_cast<int64_t*>(shape.data())};
  ov_tensor_t* tensor = nullptr;
  TRY_STATUS(library->Check(
      library->ov_tensor_create_from_host_ptr(ToOpenVino(dtype), dims, const_cast<std::byte*>(data), &tensor),
      "wrap a tensor"));
  return Own(library, tensor, &Library::ov_tensor_free);
}

using PortPtr = std::shared_ptr<ov_output_const_port_t>;

Result<std::string> AnyName(const LibraryPtr& library, const PortPtr& port) {
  char* name = nullptr;
  TRY_STATUS(library->Check(library->ov_port_get_any_name(port.get(), &name), "read a tensor's name"));
  std::string copy = name;
  library->ov_free(name);
  return copy;
}

Result<TensorInfo> Describe(const LibraryPtr& library, const PortPtr& port) {
  TensorInfo info{.name = TRY(AnyName(library, port))};
  ov_element_type_e type{};
  TRY_STATUS(library->Check(library->ov_port_get_element_type(port.get(), &type), info.name));
  info.dtype = TRY_CONTEXT(FromOpenVino(type), fmt::format("'{}'", info.name));
  ov_partial_shape_t shape{};
  TRY_STATUS(library->Check(library->ov_port_get_partial_shape(port.get(), &shape), info.name));
  const bool has_rank = shape.rank.min == shape.rank.max;  // without one it is told as a scalar
  for (int64_t i = 0; has_rank && i < shape.rank.max; ++i) {
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
// `declared` says which one the file gives it.
Status TakeDeclaredNames(const LibraryPtr& library, const ov_compiled_model_t* model, const Side& side,
                         const std::vector<TensorInfo>& declared, std::vector<TensorInfo>& infos) {
  std::vector<std::string> told;
  for (const TensorInfo& info : infos) told.push_back(info.name);
  for (const TensorInfo& wanted : declared) {
    ov_output_const_port_t* port = nullptr;
    if (side.by_name(model, wanted.name.c_str(), &port) != ov_status_e::OK) continue;
    const std::string name = TRY(AnyName(library, Own(library, port, &Library::ov_output_const_port_free)));
    const auto match = std::ranges::find(told, name);
    if (match == told.end()) continue;
    infos[static_cast<size_t>(match - told.begin())].name = wanted.name;
    match->clear();
  }
  return {};
}

Result<std::vector<TensorInfo>> ReadInfos(const LibraryPtr& library, const ov_compiled_model_t* model,
                                          const Side& side, const std::vector<TensorInfo>& declared) {
  size_t count = 0;
  TRY_STATUS(library->Check(side.count(model, &count), "count the tensors"));
  std::vector<TensorInfo> infos;
  for (size_t i = 0; i < count; ++i) {
    ov_output_const_port_t* port = nullptr;
    TRY_STATUS(library->Check(side.by_index(model, i, &port), "read a tensor"));
    infos.push_back(TRY(Describe(library, Own(library, port, &Library::ov_output_const_port_free))));
  }
  TRY_STATUS(TakeDeclaredNames(library, model, side, declared, infos));
  return infos;
}

Result<std::string> ReadProperty(const LibraryPtr& library, const ov_compiled_model_t* model,
                                 const char* key) {
  char* text = nullptr;
  TRY_STATUS(library->Check(library->ov_compiled_model_get_property(model, key, &text), key));
  std::string copy = text;
  library->ov_free(text);
  return copy;
}

// An infer request, and where its outputs go. By default that is memory of the request, which the next run
// overwrites, so they are copied. Once a run has shown which shapes come out for the shapes that go in, the
// next runs of the same shapes write straight into memory that is handed on. One thread at a time.
class Slot {
 public:
  static Result<Slot> Create(const LibraryPtr& library, const ov_compiled_model_t* model,
                             const std::vector<TensorInfo>& outputs);

  // `inputs`: checked, in the order of the model. `wanted`: indices of outputs.
  Result<std::vector<Tensor>> Run(const std::vector<const Tensor*>& inputs,
                                  const std::vector<size_t>& wanted);

 private:
  struct Output {
    TensorInfo declared;
    TensorPtr own;               // the request's memory
    std::optional<Shape> shape;  // that came out of the last run for the shapes that went in
    bool foreseeable = true;     // that shape says what the next run gives: the data do not decide it
    bool placed = false;         // the request holds memory of ours
  };
  Status SetInputs(const std::vector<const Tensor*>& inputs, const std::vector<Bytes>& data);
  // The first gives the request memory for an output, and nothing where the size is not known; the other its
  // own again.
  Result<Bytes> Place(size_t index);
  Status TakeBack(size_t index);
  Status Infer() { return library_->Check(library_->ov_infer_request_infer(request_.get()), "openvino"); }
  Status InferInOwnMemory();
  Result<Tensor> Read(size_t index, Bytes placed);

  LibraryPtr library_;
  std::shared_ptr<ov_infer_request_t> request_;
  std::vector<Output> outputs_;
  std::vector<Shape> input_shapes_;  // of the last run
};

Result<Slot> Slot::Create(const LibraryPtr& library, const ov_compiled_model_t* model,
                          const std::vector<TensorInfo>& outputs) {
  Slot slot;
  slot.library_ = library;
  ov_infer_request_t* request = nullptr;
  TRY_STATUS(library->Check(library->ov_compiled_model_create_infer_request(model, &request), "openvino"));
  slot.request_ = Own(library, request, &Library::ov_infer_request_free);
  for (const TensorInfo& declared : outputs) {
    ov_tensor_t* own = nullptr;
    TRY_STATUS(library->Check(
        library->ov_infer_request_get_output_tensor_by_index(request, slot.outputs_.size(), &own),
        declared.name));
    slot.outputs_.push_back({.declared = declared, .own = Own(library, own, &Library::ov_tensor_free)});
  }
  return slot;
}

Result<std::vector<Tensor>> Slot::Run(const std::vector<const Tensor*>& inputs,
                                      const std::vector<size_t>& wanted) {
  std::vector<Bytes> data;
  std::vector<Shape> shapes;
  for (const Tensor* tensor : inputs) {
    data.push_back(AlignedData(*tensor));
    shapes.push_back(tensor->shape);
  }
  if (shapes != input_shapes_) {
    for (Output& output : outputs_) output.shape = std::nullopt;
    input_shapes_ = std::move(shapes);
  }
  TRY_STATUS(SetInputs(inputs, data));
  std::vector<Bytes> placed(outputs_.size());
  for (const size_t index : wanted) placed[index] = TRY(Place(index));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (placed[i].empty()) TRY_STATUS(TakeBack(i));
  }
  Status ran = Infer();
  if (!ran && std::ranges::any_of(outputs_, &Output::placed)) {
    placed.assign(outputs_.size(), {});
    ran = InferInOwnMemory();
  }
  TRY_STATUS(ran);
  std::vector<Tensor> results;
  for (const size_t index : wanted) results.push_back(TRY(Read(index, std::move(placed[index]))));
  return results;
}

Status Slot::SetInputs(const std::vector<const Tensor*>& inputs, const std::vector<Bytes>& data) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorPtr view = TRY(View(library_, inputs[i]->dtype, inputs[i]->shape, data[i].data()));
    TRY_STATUS(
        library_->Check(library_->ov_infer_request_set_input_tensor_by_index(request_.get(), i, view.get()),
                        inputs[i]->name));
  }
  return {};
}

Result<Bytes> Slot::Place(size_t index) {
  Output& output = outputs_[index];
  if (!output.foreseeable || !output.shape) return Bytes();
  const size_t size = static_cast<size_t>(TRY(ElementCount(*output.shape))) * ByteSize(output.declared.dtype);
  if (size == 0) return Bytes();
  Bytes memory = Bytes::AllocateUninitialized(size);
  const TensorPtr view = TRY(View(library_, output.declared.dtype, *output.shape, memory.data()));
  TRY_STATUS(library_->Check(
      library_->ov_infer_request_set_output_tensor_by_index(request_.get(), index, view.get()),
      output.declared.name));
  output.placed = true;
  return memory;
}

Status Slot::TakeBack(size_t index) {
  Output& output = outputs_[index];
  if (!output.placed) return {};
  output.placed = false;
  return library_->Check(
      library_->ov_infer_request_set_output_tensor_by_index(request_.get(), index, output.own.get()),
      output.declared.name);
}

// After a failure: an output whose shape the data decide may have outgrown the memory it was given.
Status Slot::InferInOwnMemory() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].foreseeable &= !outputs_[i].placed;
    TRY_STATUS(TakeBack(i));
  }
  return Infer();
}

Result<Tensor> Slot::Read(size_t index, Bytes placed) {
  Output& output = outputs_[index];
  ov_tensor_t* tensor = nullptr;
  TRY_STATUS(
      library_->Check(library_->ov_infer_request_get_output_tensor_by_index(request_.get(), index, &tensor),
                      output.declared.name));
  const TensorPtr owned = Own(library_, tensor, &Library::ov_tensor_free);
  ov_shape_t dims{};
  TRY_STATUS(library_->Check(library_->ov_tensor_get_shape(tensor, &dims), output.declared.name));
  const Shape& shape = output.shape.emplace(dims.dims, dims.dims + dims.rank);
  library_->ov_shape_free(&dims);
  void* memory = nullptr;
  TRY_STATUS(library_->Check(library_->ov_tensor_data(tensor, &memory), output.declared.name));

  const size_t size = static_cast<size_t>(TRY(ElementCount(shape))) * ByteSize(output.declared.dtype);
  const bool in_place = size > 0 && memory == placed.data();
  return Tensor{
      .name = output.declared.name,
      .dtype = output.declared.dtype,
      .shape = shape,
      .data = in_place ? placed.Slice(0, size) : Bytes::Copy({static_cast<const std::byte*>(memory), size})};
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
  OpenVinoSession(Loaded loaded, std::vector<Slot> slots, const Clock& clock)
      : loaded_(std::move(loaded)), clock_(clock), slots_(std::move(slots)) {
    for (Slot& slot : slots_) free_.push_back(&slot);
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
    Slot& slot = TakeSlot();
    const Instant started = clock_.Now();
    auto outputs = slot.Run(bound, indices);
    GiveSlotBack(slot);
    return RunResult{.outputs = TRY(std::move(outputs)), .started = started};
  }

 private:
  Slot& TakeSlot() {
    MutexLock lock(mutex_);
    while (free_.empty()) changed_.Wait(mutex_);
    Slot& slot = *free_.back();
    free_.pop_back();
    return slot;
  }
  void GiveSlotBack(Slot& slot) {
    {
      MutexLock lock(mutex_);
      free_.push_back(&slot);
    }
    changed_.NotifyOne();
  }

  const Loaded loaded_;
  const Clock& clock_;
  std::vector<Slot> slots_;  // one for each stream

  Mutex mutex_;
  CondVar changed_;
  std::vector<Slot*> free_ GUARDED_BY(mutex_);
};

class OpenVinoEngine final : public Engine {
 public:
  OpenVinoEngine(LibraryPtr library, std::shared_ptr<ov_core_t> core, const Clock& clock)
      : library_(std::move(library)), core_(std::move(core)), clock_(clock) {}

  std::string name() const override { return "openvino"; }
  std::string version() const override { return library_->version; }
  Result<std::shared_ptr<Session>> Load(const ModelSource& source, const SessionOptions& options) override;

 private:
  using ModelPtr = std::shared_ptr<ov_compiled_model_t>;
  Result<ModelPtr> Compile(const std::string& path, const SessionOptions& options,
                           const ThreadShare& share) const;

  const LibraryPtr library_;
  const std::shared_ptr<ov_core_t> core_;
  const Clock& clock_;
};

Result<std::shared_ptr<Session>> OpenVinoEngine::Load(const ModelSource& source,
                                                      const SessionOptions& options) {
  if (options.precision != "f32" && options.precision != "bf16" && options.precision != "f16") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("unknown precision '{}': openvino takes f32, bf16 or f16", options.precision));
  }
  const ThreadShare share = TRY(ShareThreads(options, UsableCpus()));
  std::string precision = TRY(PrecisionInForce(source.path, options.precision));
  const ModelPtr model = TRY(Compile(source.path, options, share));
  const std::string in_force = TRY(ReadProperty(library_, model.get(), "INFERENCE_PRECISION_HINT"));
  if (in_force != options.precision) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("openvino has no {} on this CPU, it would compute in {}: choose that precision",
                            options.precision, in_force));
  }
  OpenVinoSession::Loaded loaded{
      .model = model, .inputs = {}, .outputs = {}, .precision = std::move(precision), .share = share};
  const Library& api = *library_;
  const Side inputs{api.ov_compiled_model_inputs_size, api.ov_compiled_model_input_by_index,
                    api.ov_compiled_model_input_by_name};
  const Side outputs{api.ov_compiled_model_outputs_size, api.ov_compiled_model_output_by_index,
                     api.ov_compiled_model_output_by_name};
  loaded.inputs = TRY(ReadInfos(library_, model.get(), inputs, source.inputs));
  loaded.outputs = TRY(ReadInfos(library_, model.get(), outputs, source.outputs));
  std::vector<Slot> slots;
  for (int i = 0; i < share.streams; ++i)
    slots.push_back(TRY(Slot::Create(library_, model.get(), loaded.outputs)));
  return std::make_shared<OpenVinoSession>(std::move(loaded), std::move(slots), clock_);
}

Result<OpenVinoEngine::ModelPtr> OpenVinoEngine::Compile(const std::string& path,
                                                         const SessionOptions& options,
                                                         const ThreadShare& share) const {
  const std::string threads = fmt::format("{}", share.threads), streams = fmt::format("{}", share.streams);
  ov_compiled_model_t* model = nullptr;
  const ov_status_e status = library_->ov_core_compile_model_from_file(
      core_.get(), path.c_str(), "CPU", 10, &model,           // 10: keys and values
      "INFERENCE_PRECISION_HINT", options.precision.c_str(),  //
      "INFERENCE_NUM_THREADS", threads.c_str(),               //
      "NUM_STREAMS", streams.c_str(),                         //
      "CACHE_DIR", options.cache_dir.c_str(),                 // empty: none
      "ENABLE_CPU_PINNING", "NO");                            // the machine is shared with our own threads
  TRY_STATUS(library_->Check(status, path, ErrorCode::kInvalidArgument));
  return Own(library_, model, &Library::ov_compiled_model_free);
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenOpenVino(const Clock& clock) {
  auto library = TRY(Library::Open());
  ov_core_t* core = nullptr;
  TRY_STATUS(library->Check(library->ov_core_create(&core), "engine openvino"));
  auto owned = Own(library, core, &Library::ov_core_free);
  return std::make_unique<OpenVinoEngine>(std::move(library), std::move(owned), clock);
}

}  // namespace weir::infer
