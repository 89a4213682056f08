#include "serve/warm_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/seed.h"

namespace weir::serve {
namespace {

using infer::DType;
using infer::Tensor;
using infer::TensorInfo;

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one tensor

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Zeros; of kBytes, elements without a byte.
Result<Tensor> Zeros(const TensorInfo& info, infer::Shape shape) {
  const int64_t elements = TRY(infer::ElementCount(shape));
  const auto size = static_cast<int64_t>(info.dtype == DType::kBytes ? 4 : ByteSize(info.dtype));
  if (elements > kMostBytes / size)
    return Invalid(fmt::format("{} is too large to warm up with", infer::ToString(shape)));
  return Tensor{.name = info.name,
                .dtype = info.dtype,
                .shape = std::move(shape),
                .data = Bytes::Allocate(static_cast<size_t>(elements * size))};
}

// Floats from 0 to 1, whole numbers and truth values from 0 to 1: what no model chokes on.
void FillRandom(Random& random, Tensor& tensor) {
  const size_t size = ByteSize(tensor.dtype);
  const auto data = tensor.data.mutable_span();
  for (size_t at = 0; size > 0 && at < data.size(); at += size) {
    if (tensor.dtype == DType::kFp32) {
      const auto value = static_cast<float>(random.Uniform());
      std::memcpy(data.data() + at, &value, sizeof value);
    } else if (tensor.dtype == DType::kFp64) {
      const double value = random.Uniform();
      std::memcpy(data.data() + at, &value, sizeof value);
    } else if (tensor.dtype == DType::kFp16 || tensor.dtype == DType::kBf16) {
      const uint16_t half = tensor.dtype == DType::kFp16 ? 0x3800 : 0x3F00;  // 0.5
      std::memcpy(data.data() + at, &half, sizeof half);
    } else {
      data[at] = std::byte(random.Integer(0, 1));
    }
  }
}

Result<Bytes> ReadData(const model::Model& model, const model::WarmUpInput& wanted, const Tensor& tensor) {
  Bytes data = TRY(model::ReadWarmUpFile(model, wanted.file, static_cast<uint64_t>(kMostBytes)));
  if (wanted.dtype != DType::kBytes && data.size() != tensor.data.size()) {
    return Invalid(fmt::format("warmup/{} has {} bytes, and {} of {} takes {}", wanted.file, data.size(),
                               infer::ToString(tensor.shape), ToString(tensor.dtype), tensor.data.size()));
  }
  return data;
}

Bytes Repeat(const Bytes& data, int times) {
  if (times == 1) return data;
  Bytes all = Bytes::AllocateUninitialized(data.size() * static_cast<size_t>(times));
  for (size_t i = 0; i < static_cast<size_t>(times); ++i) {
    if (!data.empty()) std::memcpy(all.mutable_data() + i * data.size(), data.data(), data.size());
  }
  return all;
}

// `wanted` is one row as clients see it; the tensor is what the model takes.
Result<Tensor> MakeInput(const model::Model& model, const model::WarmUpInput& wanted, const TensorInfo& info,
                         int batch, Random& random) {
  if (wanted.dtype != info.dtype) {
    return Invalid(
        fmt::format("is {}, and the model takes {}", ToString(wanted.dtype), ToString(info.dtype)));
  }
  Tensor row = TRY(Zeros(info, wanted.dims));
  if (wanted.random) FillRandom(random, row);
  if (!wanted.file.empty()) row.data = TRY(ReadData(model, wanted, row));

  const bool batched = model.serving_max_batch > 0;
  Tensor tensor{.name = info.name, .dtype = info.dtype, .data = Repeat(row.data, batched ? batch : 1)};
  // The model's own shape: what it leaves free is taken from the row, in order.
  auto free = wanted.dims.begin();
  const bool reshaped = info.shape.size() != wanted.dims.size() + (batched ? 1 : 0);
  if (info.any_rank) tensor.shape = wanted.dims;
  for (size_t i = 0; i < info.shape.size() && !info.any_rank; ++i) {
    if (batched && i == 0) {
      tensor.shape.push_back(batch);
    } else if (!reshaped) {
      tensor.shape.push_back(*free++);
    } else if (info.shape[i] < 0) {
      return Invalid("is reshaped to a shape that is not fixed; warm up is not possible with it");
    } else {
      tensor.shape.push_back(info.shape[i]);
    }
  }
  const auto has = infer::ElementCount(tensor.shape), given = infer::ElementCount(row.shape);
  if (!has || !given || *has != *given * (batched ? batch : 1))
    return Invalid(fmt::format("dims {} do not fit the model's {}", infer::ToString(wanted.dims),
                               infer::ToString(info.shape)));
  return tensor;
}

Result<WarmUpSample> MakeSample(const model::Model& model, const model::WarmUp& warm_up, Random& random) {
  WarmUpSample sample{.name = warm_up.name, .count = warm_up.count};
  std::vector<TensorInfo> inputs = model.inputs;
  inputs.insert(inputs.end(), model.optional_inputs.begin(), model.optional_inputs.end());
  for (const TensorInfo& info : inputs) {
    const auto wanted = warm_up.inputs.find(info.name);
    if (wanted == warm_up.inputs.end() && info.optional) continue;
    if (wanted == warm_up.inputs.end())
      return Invalid(fmt::format("has nothing for input \"{}\"", info.name));
    sample.inputs.push_back(TRY_CONTEXT(MakeInput(model, wanted->second, info, warm_up.batch_size, random),
                                        fmt::format("input \"{}\"", info.name)));
  }
  for (const auto& [name, input] : warm_up.inputs) {
    if (model::FindInput(model, name) == nullptr)
      return Invalid(fmt::format("names input \"{}\", which the model does not have", name));
  }
  return sample;
}

std::vector<WarmUpSample> OneRowOfZeros(const model::Model& model) {
  WarmUpSample sample;
  for (const TensorInfo& info : model.inputs) {
    if (info.dtype == DType::kBytes || info.any_rank)
      return {};  // a model may refuse any text that it was not made for
    infer::Shape shape = info.shape;
    if (!shape.empty() && shape.front() < 0) shape.front() = 1;
    if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; })) return {};
    Result<Tensor> zeros = Zeros(info, std::move(shape));
    if (!zeros) return {};
    sample.inputs.push_back(*std::move(zeros));
  }
  return {std::move(sample)};
}

}  // namespace

Result<std::vector<WarmUpSample>> MakeWarmUpSamples(const model::Model& model) {
  if (model.config.warm_ups.empty()) return OneRowOfZeros(model);
  Random random = Seed(1).Stream("warm-up").MakeRandom();
  std::vector<WarmUpSample> samples;
  for (const model::WarmUp& warm_up : model.config.warm_ups) {
    samples.push_back(
        TRY_CONTEXT(MakeSample(model, warm_up, random), fmt::format("model_warmup \"{}\"", warm_up.name)));
  }
  return samples;
}

}  // namespace weir::serve
