#include "serve/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/cut.h"
#include "base/json.h"

namespace weir::serve {
namespace {

using infer::Shape;
using infer::Tensor;
using infer::TensorInfo;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

const TensorInfo* Find(const std::vector<TensorInfo>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::string Names(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

constexpr size_t kMaxName = 200;  // bytes of a client's name in a message

std::unexpected<Error> NoSuch(const ServedModel& served, const char* kind, const std::string& name,
                              const std::vector<TensorInfo>& there) {
  return Invalid(fmt::format("{} has no {} \"{}\"; it has: {}", served.What(), kind,
                             EscapeBytes(CutMiddle(name, kMaxName)), Names(there)));
}

bool Fits(const Shape& shape, const Shape& wanted) {
  return std::ranges::equal(shape, wanted,
                            [](int64_t is, int64_t wants) { return wants < 0 || is == wants; });
}

Status CheckTensor(const ServedModel& served, const Tensor& tensor, const TensorInfo& info) {
  if (tensor.dtype != info.dtype) {
    return Invalid(fmt::format("{} is {}, and the model takes {}", served.What("input", info.name),
                               ToString(tensor.dtype), ToString(info.dtype)));
  }
  if (Fits(tensor.shape, info.shape)) return {};
  return Invalid(fmt::format("{} has shape {}, and the model takes {}", served.What("input", info.name),
                             infer::ToString(tensor.shape), infer::ToString(info.shape)));
}

Result<int64_t> RowsOf(const ServedModel& served, const infer::Request& request) {
  const LoadedModel& loaded = served.loaded;
  const auto& fixed = loaded.model().fixed_batch;
  if (loaded.max_batch() == 0 || request.inputs.empty()) return 1;
  const int64_t rows = request.inputs.front().shape.front();
  for (const Tensor& input : request.inputs) {
    if (input.shape.front() != rows) {
      return Invalid(fmt::format("{} has a batch of {}, and input \"{}\" one of {}",
                                 served.What("input", input.name), input.shape.front(),
                                 request.inputs.front().name, rows));
    }
  }
  if (rows < 1)
    return Invalid(fmt::format("{}: the batch is {}; it must be at least 1", served.What(), rows));
  if (rows > loaded.max_batch()) {
    return Invalid(fmt::format("{}: the batch of {} is over its max_batch_size of {}", served.What(), rows,
                               loaded.max_batch()));
  }
  if (fixed && rows != *fixed) {
    return Invalid(
        fmt::format("{}: the batch is {}, and the model takes {} only", served.What(), rows, *fixed));
  }
  return rows;
}

Status CheckInputs(const ServedModel& served, const infer::Request& request) {
  for (const Tensor& input : request.inputs) {
    const TensorInfo* info = Find(served.inputs, input.name);
    if (info == nullptr) return NoSuch(served, "input", input.name, served.inputs);
    TRY_STATUS(CheckTensor(served, input, *info));
  }
  for (const TensorInfo& info : served.inputs) {
    if (std::ranges::find(request.inputs, info.name, &Tensor::name) == request.inputs.end())
      return Invalid(served.What("input", info.name) + " is missing");
  }
  if (request.inputs.size() == served.inputs.size()) return {};
  return Invalid(served.What() + ": an input is there twice");
}

Status CheckOutputs(const ServedModel& served, const std::vector<wire::OutputWish>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const wire::OutputWish& wish = outputs[i];
    const TensorInfo* info = Find(served.outputs, wish.name);
    if (info == nullptr) return NoSuch(served, "output", wish.name, served.outputs);
    const bool number = info->dtype != infer::DType::kBytes && info->dtype != infer::DType::kBool;
    if (wish.classification > 0 && !number) {
      return Invalid(fmt::format("{} is {}: only numbers can be ranked as classes",
                                 served.What("output", wish.name), ToString(info->dtype)));
    }
    for (size_t k = 0; k < i; ++k) {
      if (outputs[k].name == wish.name)
        return Invalid(served.What("output", wish.name) + " is asked for twice");
    }
  }
  return {};
}

// A model without priorities takes any: they mean nothing to it.
Status CheckPriority(const ServedModel& served, int priority) {
  const auto& batching = served.loaded.model().config.dynamic_batching;
  const int levels = batching ? batching->priority_levels : 0;
  if (levels == 0 || (priority >= 0 && priority <= levels)) return {};
  return Invalid(
      fmt::format("{}: priority {}, and its priorities are 1 to {}", served.What(), priority, levels));
}

}  // namespace

Result<int64_t> CheckRequest(const ServedModel& served, const wire::InferRequest& request) {
  TRY_STATUS(CheckInputs(served, request.request));
  TRY_STATUS(CheckOutputs(served, request.outputs));
  TRY_STATUS(CheckPriority(served, request.request.priority));
  return RowsOf(served, request.request);
}

Shape Reshape(const Shape& actual, const Shape& from, const Shape& to) {
  Shape shape = to;
  size_t at = 0;
  for (int64_t& dim : shape) {
    if (dim >= 0) continue;
    while (at < from.size() && from[at] >= 0) ++at;
    CHECK(at < actual.size());
    dim = actual[at++];
  }
  return shape;
}

}  // namespace weir::serve
