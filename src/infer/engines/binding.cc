#include "infer/engines/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::infer {
namespace {

std::string Names(const std::vector<TensorInfo>& infos) {
  std::vector<std::string_view> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// A free dimension may be empty.
bool Fits(const Shape& shape, const Shape& declared) {
  return std::ranges::equal(
      shape, declared, [](int64_t size, int64_t wanted) { return wanted < 0 ? size >= 0 : size == wanted; });
}

// Each element is a 4-byte little-endian length and its bytes.
bool HoldsStrings(const Bytes& data, int64_t count) {
  size_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (data.size() - offset < sizeof length) return false;
    std::memcpy(&length, data.data() + offset, sizeof length);
    offset += sizeof length;
    if (data.size() - offset < length) return false;
    offset += length;
  }
  return offset == data.size();
}

Status CheckTensor(const Tensor& tensor, const TensorInfo& declared) {
  const auto refuse = [&](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("input '{}': {}", tensor.name, why));
  };
  if (tensor.dtype != declared.dtype) {
    return refuse(
        fmt::format("type is {}, the model takes {}", ToString(tensor.dtype), ToString(declared.dtype)));
  }
  if (!declared.any_rank && !Fits(tensor.shape, declared.shape)) {
    return refuse(
        fmt::format("shape is {}, the model takes {}", ToString(tensor.shape), ToString(declared.shape)));
  }
  const int64_t count = TRY_CONTEXT(ElementCount(tensor.shape), fmt::format("input '{}'", tensor.name));
  if (tensor.dtype == DType::kBytes) {
    if (HoldsStrings(tensor.data, count)) return {};
    return refuse(
        fmt::format("its {} bytes are not {} elements with their lengths", tensor.data.size(), count));
  }
  const size_t element = ByteSize(tensor.dtype);
  if (tensor.data.size() % element != 0 || std::cmp_not_equal(tensor.data.size() / element, count)) {
    return refuse(fmt::format("has {} bytes, {} elements of {} are wanted", tensor.data.size(), count,
                              ToString(tensor.dtype)));
  }
  return {};
}

}  // namespace

void TakeDeclaredShapes(const std::vector<TensorInfo>& declared, std::vector<TensorInfo>& told) {
  for (TensorInfo& info : told) {
    const auto found = std::ranges::find(declared, info.name, &TensorInfo::name);
    if (found == declared.end() || !info.shape.empty() || found->shape.empty()) continue;
    info.shape = found->shape;
    info.any_rank = found->any_rank;
  }
}

std::vector<std::optional<size_t>> InputsHandedOn(const std::vector<TensorInfo>& inputs,
                                                  const std::vector<TensorInfo>& outputs) {
  std::vector<std::optional<size_t>> handed_on(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto input = std::ranges::find(inputs, outputs[i].name, &TensorInfo::name);
    if (input != inputs.end()) handed_on[i] = static_cast<size_t>(input - inputs.begin());
  }
  return handed_on;
}

// A copy: the caller may use the memory of its input again while the answer is read.
Tensor AnswerWith(const Tensor& input) {
  Tensor answer = input;
  answer.data = Bytes::Copy(input.data.span());
  return answer;
}

Result<std::vector<const Tensor*>> BindInputs(const std::vector<TensorInfo>& declared,
                                              const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> bound(declared.size(), nullptr);
  for (const Tensor& tensor : inputs) {
    const auto info = std::ranges::find(declared, tensor.name, &TensorInfo::name);
    if (info == declared.end()) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("the model has no input '{}': its inputs are {}",
                                                           tensor.name, Names(declared)));
    }
    const Tensor*& place = bound[static_cast<size_t>(info - declared.begin())];
    if (place != nullptr) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("input '{}' is given twice", tensor.name));
    }
    TRY_STATUS(CheckTensor(tensor, *info));
    place = &tensor;
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i] == nullptr && !declared[i].optional) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("input '{}' is missing", declared[i].name));
    }
  }
  return bound;
}

Result<std::vector<size_t>> BindOutputs(const std::vector<TensorInfo>& declared,
                                        const std::vector<std::string>& wanted) {
  std::vector<size_t> indices;
  if (wanted.empty()) {
    for (size_t i = 0; i < declared.size(); ++i) indices.push_back(i);
    return indices;
  }
  for (const std::string& name : wanted) {
    const auto info = std::ranges::find(declared, name, &TensorInfo::name);
    if (info == declared.end()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("the model has no output '{}': its outputs are {}", name, Names(declared)));
    }
    indices.push_back(static_cast<size_t>(info - declared.begin()));
    if (std::ranges::count(wanted, name) > 1) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("output '{}' is asked for twice", name));
    }
  }
  return indices;
}

int64_t BatchSize(const Shape& shape) { return shape.empty() ? 1 : shape.front(); }

Bytes AlignedData(const Tensor& tensor) {
  const size_t element = std::max<size_t>(ByteSize(tensor.dtype), 1);
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % element == 0;
  return aligned ? tensor.data : Bytes::Copy(tensor.data.span());
}

}  // namespace weir::infer
