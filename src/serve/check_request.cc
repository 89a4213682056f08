#include "serve/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/text.h"
#include "oip/triton_names.h"
#include "serve/classification.h"

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

bool Fits(const Shape& shape, const Shape& wanted) {
  return std::ranges::equal(shape, wanted,
                            [](int64_t is, int64_t wants) { return wants < 0 || is == wants; });
}

// The words of a refusal: our own, which name the remedy, or Triton's.
class Words {
 public:
  Words(const ServedModel& served, const std::string& request_id, oip::Compat compat)
      : served_(served), id_(request_id), triton_(compat == oip::Compat::kTriton) {}

  std::unexpected<Error> UnknownInput(const std::string& name) const {
    if (triton_) return std::unexpected(oip::triton::UnexpectedInput(served_.name, name));
    return NoSuch("input", name, served_.inputs);
  }
  std::unexpected<Error> UnknownOutput(const std::string& name) const {
    if (triton_) return std::unexpected(oip::triton::UnexpectedOutput(served_.name, name));
    return NoSuch("output", name, served_.outputs);
  }
  std::unexpected<Error> Missing(const std::string& name, size_t given) const {
    if (triton_) {
      return std::unexpected(
          oip::triton::MissingInput(id_, served_.name, served_.inputs.size(), given, name));
    }
    return Invalid(served_.What("input", name) + " is missing");
  }
  std::unexpected<Error> WrongType(const Tensor& tensor, const TensorInfo& info) const {
    if (triton_) {
      return std::unexpected(oip::triton::WrongType(id_, served_.name, info.name, tensor.dtype, info.dtype));
    }
    return Invalid(fmt::format("{} is {}, and the model takes {}", served_.What("input", info.name),
                               ToString(tensor.dtype), ToString(info.dtype)));
  }
  std::unexpected<Error> WrongShape(const Tensor& tensor, const TensorInfo& info) const {
    if (triton_) {
      return std::unexpected(oip::triton::WrongShape(id_, served_.name, info.name, tensor.shape, info.shape));
    }
    return Invalid(fmt::format("{} has shape {}, and the model takes {}", served_.What("input", info.name),
                               infer::ToString(tensor.shape), infer::ToString(info.shape)));
  }
  std::unexpected<Error> UnequalBatch(const Tensor& input, const Tensor& first) const {
    if (triton_) return std::unexpected(oip::triton::UnequalBatch(id_, served_.name, input.name));
    return Invalid(fmt::format("{} has a batch of {}, and input \"{}\" one of {}",
                               served_.What("input", input.name), input.shape.front(), first.name,
                               first.shape.front()));
  }
  std::unexpected<Error> LargeBatch(int64_t rows) const {
    const int most = served_.loaded.max_batch();
    if (triton_) return std::unexpected(oip::triton::LargeBatch(id_, served_.name, most));
    return Invalid(
        fmt::format("{}: the batch of {} is over its max_batch_size of {}", served_.What(), rows, most));
  }

 private:
  std::unexpected<Error> NoSuch(const char* kind, const std::string& name,
                                const std::vector<TensorInfo>& there) const {
    return Invalid(fmt::format("{} has no {} \"{}\"; it has: {}", served_.What(), kind,
                               EscapeBytes(CutMiddle(name, kMaxName)), Names(there)));
  }

  const ServedModel& served_;
  const std::string& id_;
  const bool triton_;
};

Result<int64_t> RowsOf(const ServedModel& served, const infer::Request& request, const Words& words) {
  const LoadedModel& loaded = served.loaded;
  const auto& fixed = loaded.model().fixed_batch;
  if (loaded.max_batch() == 0 || request.inputs.empty()) return 1;
  for (const Tensor& input : request.inputs) {
    if (input.shape.empty()) return words.WrongShape(input, *Find(served.inputs, input.name));
  }
  const int64_t rows = request.inputs.front().shape.front();
  for (const Tensor& input : request.inputs) {
    if (input.shape.front() != rows) return words.UnequalBatch(input, request.inputs.front());
  }
  if (rows < 1)
    return Invalid(fmt::format("{}: the batch is {}; it must be at least 1", served.What(), rows));
  if (rows > loaded.max_batch()) return words.LargeBatch(rows);
  if (fixed && rows != *fixed) {
    return Invalid(
        fmt::format("{}: the batch is {}, and the model takes {} only", served.What(), rows, *fixed));
  }
  return rows;
}

// A single number has the shape [] or [1], whichever is declared.
bool FitsInput(const ServedModel& served, const Tensor& input, const TensorInfo& info) {
  if (info.any_rank || Fits(input.shape, info.shape)) return true;
  const auto is_number = [](const Shape& shape) { return shape.empty() || shape == Shape{1}; };
  if (!is_number(input.shape) || !is_number(info.shape) || served.payload != Payload::kTensor) return false;
  const TensorInfo* const own = model::FindInput(served.loaded.model(), info.name);
  return own != nullptr && own->shape.empty();
}

Status CheckInputs(const ServedModel& served, const infer::Request& request, const Words& words) {
  for (const Tensor& input : request.inputs) {
    const TensorInfo* info = Find(served.inputs, input.name);
    if (info == nullptr) return words.UnknownInput(input.name);
    if (input.dtype != info->dtype) return words.WrongType(input, *info);
    if (!FitsInput(served, input, *info)) return words.WrongShape(input, *info);
  }
  size_t left_out = 0;
  for (const TensorInfo& info : served.inputs) {
    if (std::ranges::find(request.inputs, info.name, &Tensor::name) != request.inputs.end()) continue;
    if (!info.optional) return words.Missing(info.name, request.inputs.size());
    ++left_out;
  }
  if (request.inputs.size() + left_out == served.inputs.size()) return {};
  return Invalid(served.What() + ": an input is there twice");
}

Status CheckOutputs(const ServedModel& served, const std::vector<oip::RequestedOutput>& outputs,
                    const Words& words) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const oip::RequestedOutput& wish = outputs[i];
    const TensorInfo* info = Find(served.outputs, wish.name);
    if (info == nullptr) return words.UnknownOutput(wish.name);
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

// Checks outputs whose classes are known before the model has run; Classify checks the others.
Status CheckClassifications(const ServedModel& served, const std::vector<oip::RequestedOutput>& outputs,
                            int64_t rows) {
  for (const oip::RequestedOutput& wish : outputs) {
    if (wish.classification <= 0) continue;
    const TensorInfo& info = *Find(served.outputs, wish.name);
    if (info.any_rank) continue;
    Shape shape = info.shape;
    if (served.loaded.max_batch() > 0 && !shape.empty()) shape.erase(shape.begin());
    const auto classes = infer::ElementCount(shape);
    if (!classes) continue;  // a free dimension
    const Status results = CheckClassResults(rows, *classes, wish.classification);
    if (!results) return Context(served.What("output", wish.name), results.error());
  }
  return {};
}

}  // namespace

Result<int64_t> CheckRequest(const ServedModel& served, const oip::InferRequest& request,
                             oip::Compat compat) {
  const Words words(served, request.request.id, compat);
  TRY_STATUS(CheckInputs(served, request.request, words));
  TRY_STATUS(CheckOutputs(served, request.outputs, words));
  TRY_STATUS(CheckPriority(served, request.request.priority));
  const int64_t rows = TRY(RowsOf(served, request.request, words));
  TRY_STATUS(CheckClassifications(served, request.outputs, rows));
  return rows;
}

Result<Shape> Reshape(const Shape& actual, const Shape& from, const Shape& to) {
  const auto refuse = [&] {
    return Invalid(fmt::format("shape {} is not one of {}, which is reshaped to {}", infer::ToString(actual),
                               infer::ToString(from), infer::ToString(to)));
  };
  if (!Fits(actual, from)) return refuse();
  Shape shape = to;
  size_t at = 0;
  for (int64_t& dim : shape) {
    if (dim >= 0) continue;
    while (at < from.size() && from[at] >= 0) ++at;
    if (at == from.size()) return refuse();
    dim = actual[at++];
  }
  if (TRY(infer::ElementCount(shape)) != TRY(infer::ElementCount(actual))) return refuse();
  return shape;
}

Status TakeModelShapes(const ServedModel& served, std::vector<Tensor>& inputs) {
  const model::Model& model = served.loaded.model();
  if (served.payload != Payload::kTensor || !model.reshapes_inputs) return {};
  for (Tensor& input : inputs) {
    const TensorInfo *own = model::FindInput(model, input.name), *seen = Find(served.inputs, input.name);
    if (own == nullptr || seen == nullptr || own->any_rank) continue;
    const bool is_number = own->shape.empty();
    if (is_number) input.shape.clear();
    if (is_number || own->shape == seen->shape) continue;
    input.shape =
        TRY_CONTEXT(Reshape(input.shape, seen->shape, own->shape), served.What("input", input.name));
  }
  return {};
}

}  // namespace weir::serve
