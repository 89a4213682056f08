#include "infer/rows.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace weir::infer {
namespace {

// Elements of one row; nothing when there are more than 2^63.
std::optional<int64_t> ElementsOfRow(const Tensor& tensor) {
  const auto count = ElementCount(Shape(tensor.shape.begin() + 1, tensor.shape.end()));
  return count ? std::optional(*count) : std::nullopt;
}

// Bytes of the first `elements` strings of `data`; nothing when it ends before.
std::optional<size_t> StringBytes(std::span<const std::byte> data, int64_t elements) {
  size_t offset = 0;
  for (int64_t i = 0; i < elements; ++i) {
    uint32_t length = 0;
    if (data.size() - offset < sizeof length) return std::nullopt;
    std::memcpy(&length, data.data() + offset, sizeof length);
    offset += sizeof length;
    if (data.size() - offset < length) return std::nullopt;
    offset += length;
  }
  return offset;
}

// Bytes of `rows` rows of `tensor`, the first of which is at `offset`; nothing when it has not so many.
std::optional<size_t> RowBytes(const Tensor& tensor, size_t offset, int64_t rows) {
  const auto row = ElementsOfRow(tensor);
  const size_t left = tensor.data.size() - offset;
  if (!row || (*row > 0 && rows > std::numeric_limits<int64_t>::max() / *row)) return std::nullopt;
  if (tensor.dtype == DType::kBytes) return StringBytes(tensor.data.span().subspan(offset), rows * *row);
  if (static_cast<uint64_t>(rows * *row) > left / ByteSize(tensor.dtype)) return std::nullopt;
  return static_cast<size_t>(rows * *row) * ByteSize(tensor.dtype);
}

Status CheckSize(const Tensor& tensor) {
  if (RowBytes(tensor, 0, tensor.shape[0]) == tensor.data.size()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("input '{}' has {} bytes, which is not what {} {} takes", tensor.name,
                          tensor.data.size(), ToString(tensor.dtype), ToString(tensor.shape)));
}

// Input `index` of all calls as one tensor, the calls' own made slices of it.
Tensor Join(Batch& batch, size_t index) {
  Tensor joined = batch.calls[0].request.inputs[index];
  joined.shape[0] = batch.total_rows;
  size_t size = 0;
  for (const Call& call : batch.calls) size += call.request.inputs[index].data.size();
  joined.data = Bytes::AllocateUninitialized(size);
  size_t offset = 0;
  for (Call& call : batch.calls) {
    Bytes& part = call.request.inputs[index].data;
    if (!part.empty()) std::memcpy(joined.data.mutable_data() + offset, part.data(), part.size());
    part = joined.data.Slice(offset, part.size());
    offset += part.size();
  }
  return joined;
}

}  // namespace

Result<std::vector<Tensor>> JoinInputs(Batch& batch) {
  for (const Call& call : batch.calls) {
    for (const Tensor& input : call.request.inputs) TRY_STATUS(CheckSize(input));
  }
  std::vector<Tensor> joined;
  for (size_t i = 0; i < batch.calls[0].request.inputs.size(); ++i) joined.push_back(Join(batch, i));
  return joined;
}

Result<std::vector<std::vector<Tensor>>> SplitOutputs(const std::vector<Tensor>& outputs,
                                                      const std::vector<int64_t>& rows) {
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  std::vector<std::vector<Tensor>> parts(rows.size());
  for (const Tensor& output : outputs) {
    if (output.shape.empty() || output.shape[0] != total) {
      return Fail(ErrorCode::kInternal,
                  fmt::format("output '{}' has the shape {} for a batch of {} rows: the model cannot be "
                              "batched, so serve it with max_batch_size 0",
                              output.name, ToString(output.shape), total));
    }
    size_t offset = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto size = RowBytes(output, offset, rows[i]);
      if (!size) {
        return Fail(ErrorCode::kInternal,
                    fmt::format("output '{}' has {} bytes, which is less than {} {} takes", output.name,
                                output.data.size(), ToString(output.dtype), ToString(output.shape)));
      }
      Tensor part{.name = output.name, .dtype = output.dtype, .shape = output.shape, .data = {}};
      part.shape[0] = rows[i];
      part.data = output.data.Slice(offset, *size);
      parts[i].push_back(std::move(part));
      offset += *size;
    }
  }
  return parts;
}

}  // namespace weir::infer
