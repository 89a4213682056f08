#include "onnx/op.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weir::onnx {

std::optional<int64_t> ToInteger(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (number >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (number < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(number);
}

std::optional<size_t> Axis(int64_t axis, size_t rank) {
  const int64_t size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

const Value* Op::Input(size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i] >= 0 ? &net_.values[node_.inputs[i]] : nullptr;
}

Value* Op::Output(size_t i) const {
  return i < node_.outputs.size() && node_.outputs[i] >= 0 ? &net_.values[node_.outputs[i]] : nullptr;
}

Dims Op::InputDims(size_t i) const {
  const Value* value = Input(i);
  return value ? value->dims : std::nullopt;
}

Dims Op::OutputDims(size_t i) const {
  const Value* value = Output(i);
  return value ? value->dims : std::nullopt;
}

Content Op::InputContent(size_t i) const {
  const Value* value = Input(i);
  return value ? value->content : std::nullopt;
}

std::optional<std::vector<int64_t>> Op::InputIntegers(size_t i) const {
  const Content content = InputContent(i);
  if (!content) return std::nullopt;
  std::vector<int64_t> integers;
  for (const double number : *content) {
    const auto integer = ToInteger(number);
    if (!integer) return std::nullopt;
    integers.push_back(*integer);
  }
  return integers;
}

bool Op::IsConstant(size_t i) const {
  const Value* value = Input(i);
  return value != nullptr && value->origin == Origin::kConstant;
}

int64_t Op::Int(std::string_view name, int64_t fallback) const {
  const auto* attribute = net_.Attribute(node_, name);
  return attribute ? attribute->i() : fallback;
}

std::optional<std::vector<int64_t>> Op::Ints(std::string_view name) const {
  const auto* attribute = net_.Attribute(node_, name);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<double>> Op::Floats(std::string_view name) const {
  const auto* attribute = net_.Attribute(node_, name);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

std::string Op::Text(std::string_view name, std::string_view fallback) const {
  const auto* attribute = net_.Attribute(node_, name);
  return attribute ? attribute->s() : std::string(fallback);
}

const pb::TensorProto* Op::Tensor(std::string_view name) const {
  const auto* attribute = net_.Attribute(node_, name);
  return attribute && attribute->has_t() ? &attribute->t() : nullptr;
}

void Op::SetDims(size_t output, Dims dims) {
  Value* value = Output(output);
  if (value == nullptr || !dims || dims->size() > kMaxRank) return;
  for (int64_t& dim : *dims) {
    if (dim < 0 || dim > kMaxDim) dim = kUnknownDim;
  }
  value->dims = std::move(dims);
}

void Op::SetType(size_t output, int32_t type) {
  if (Value* value = Output(output)) value->type = type;
}

void Op::SetContent(size_t output, Content content) {
  constexpr size_t kMaxContent = 1024;
  Value* value = Output(output);
  if (value != nullptr && content && content->size() <= kMaxContent) value->content = std::move(content);
}

void Op::SetSameStorage(size_t output) {
  Value* value = Output(output);
  if (value != nullptr && Input(0) != nullptr) value->storage = Input(0)->storage;
}

}  // namespace weir::onnx
