#include "infer/engines/openvino_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "infer/engines/binding.h"

namespace weir::infer {
namespace {

using TensorPtr = std::shared_ptr<ov_tensor_t>;

// A view of `data`, which must outlive its use.
Result<TensorPtr> View(const OpenVinoPtr& library, DType dtype, const Shape& shape, const std::byte* data) {
  const ov_shape_t dims{static_cast<int64_t>(shape.size()), const_cast<int64_t*>(shape.data())};
  ov_tensor_t* tensor = nullptr;
  static constexpr std::byte kNothing{};  // an empty tensor has to lie somewhere, too
  if (data == nullptr) data = &kNothing;
  TRY_STATUS(library->Check(
      library->ov_tensor_create_from_host_ptr(ToOpenVino(dtype), dims, const_cast<std::byte*>(data), &tensor),
      "wrap a tensor"));
  return Own(library, tensor, &OpenVinoLibrary::ov_tensor_free);
}

template <typename T>
bool HoldsBeyond(const Bytes& data, double least, double most) {
  for (size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, data.data() + at, sizeof value);
    const auto number = static_cast<double>(value);
    if (std::isfinite(number) && (number < least || number > most)) return true;
  }
  return false;
}

// The library computes with 32 bits where the model has 64, and wraps or cuts what these do not hold.
Status CheckHeld(const Tensor& tensor) {
  constexpr double kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  constexpr double kFloat = std::numeric_limits<float>::max();
  const bool beyond = tensor.dtype == DType::kInt64    ? HoldsBeyond<int64_t>(tensor.data, kLeast, kMost)
                      : tensor.dtype == DType::kUint64 ? HoldsBeyond<uint64_t>(tensor.data, 0, kMost)
                      : tensor.dtype == DType::kUint32 ? HoldsBeyond<uint32_t>(tensor.data, 0, kMost)
                      : tensor.dtype == DType::kFp64   ? HoldsBeyond<double>(tensor.data, -kFloat, kFloat)
                                                       : false;
  if (!beyond) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("input '{}' has a value that {} does not hold, and openvino computes {} as that: use "
                  "the onnxruntime engine",
                  tensor.name, tensor.dtype == DType::kFp64 ? "FP32" : "INT32", ToString(tensor.dtype)));
}

}  // namespace

Result<OpenVinoRequest> OpenVinoRequest::Create(const OpenVinoPtr& library, const ov_compiled_model_t* model,
                                                const std::vector<TensorInfo>& outputs) {
  OpenVinoRequest made;
  made.library_ = library;
  ov_infer_request_t* request = nullptr;
  TRY_STATUS(library->Check(library->ov_compiled_model_create_infer_request(model, &request), "openvino"));
  made.request_ = Own(library, request, &OpenVinoLibrary::ov_infer_request_free);
  for (const TensorInfo& declared : outputs) {
    ov_tensor_t* own = nullptr;
    TRY_STATUS(library->Check(
        library->ov_infer_request_get_output_tensor_by_index(request, made.outputs_.size(), &own),
        declared.name));
    made.outputs_.push_back(
        {.declared = declared, .own = Own(library, own, &OpenVinoLibrary::ov_tensor_free)});
  }
  return made;
}

Result<std::vector<Tensor>> OpenVinoRequest::Run(const std::vector<const Tensor*>& inputs,
                                                 const std::vector<size_t>& wanted) {
  std::vector<Bytes> data;
  std::vector<Shape> shapes;
  for (const Tensor* tensor : inputs) {
    TRY_STATUS(CheckHeld(*tensor));
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
  for (const size_t index : wanted) results.push_back(TRY(Read(index, placed[index])));
  return results;
}

Status OpenVinoRequest::SetInputs(const std::vector<const Tensor*>& inputs, const std::vector<Bytes>& data) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorPtr view = TRY(View(library_, inputs[i]->dtype, inputs[i]->shape, data[i].data()));
    TRY_STATUS(
        library_->Check(library_->ov_infer_request_set_input_tensor_by_index(request_.get(), i, view.get()),
                        inputs[i]->name));
  }
  return {};
}

Result<Bytes> OpenVinoRequest::Place(size_t index) {
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

Status OpenVinoRequest::TakeBack(size_t index) {
  Output& output = outputs_[index];
  if (!output.placed) return {};
  output.placed = false;
  return library_->Check(
      library_->ov_infer_request_set_output_tensor_by_index(request_.get(), index, output.own.get()),
      output.declared.name);
}

// After a failure: an output whose shape the data decide may have outgrown the memory it was given.
Status OpenVinoRequest::InferInOwnMemory() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].foreseeable &= !outputs_[i].placed;
    TRY_STATUS(TakeBack(i));
  }
  return Infer();
}

Result<Tensor> OpenVinoRequest::Read(size_t index, const Bytes& placed) {
  Output& output = outputs_[index];
  ov_tensor_t* tensor = nullptr;
  TRY_STATUS(
      library_->Check(library_->ov_infer_request_get_output_tensor_by_index(request_.get(), index, &tensor),
                      output.declared.name));
  const TensorPtr owned = Own(library_, tensor, &OpenVinoLibrary::ov_tensor_free);
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

}  // namespace weir::infer
