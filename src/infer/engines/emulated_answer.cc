#include "infer/engines/emulated_answer.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // takes the widest vectors this CPU has: 14 us for a picture's floats instead of 35
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "infer/engines/binding.h"

namespace weir::infer {
namespace {

constexpr int64_t kMaxOutputBytes = int64_t{4} << 30;

// splitmix64 (Steele, Lea and Flood 2014): a cheap step for each element.
class Filler {
 public:
  explicit Filler(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

template <typename T, typename Make>
void FillWith(std::span<std::byte> row, Filler filler, Make make) {
  for (size_t i = 0; i + sizeof(T) <= row.size(); i += sizeof(T)) {
    const T value = make(filler.Next());
    std::memcpy(row.data() + i, &value, sizeof value);
  }
}

void FillRow(DType dtype, std::span<std::byte> row, uint64_t seed) {
  const Filler filler(seed);
  switch (dtype) {
    case DType::kFp32:
      return FillWith<float>(row, filler, [](uint64_t x) { return static_cast<float>(x >> 40) * 0x1p-24F; });
    case DType::kFp64:
      return FillWith<double>(row, filler, [](uint64_t x) { return static_cast<double>(x >> 11) * 0x1p-53; });
    case DType::kFp16:  // any mantissa with the exponent of [0.5, 1)
      return FillWith<uint16_t>(row, filler, [](uint64_t x) { return uint16_t(0x3800 | (x >> 54)); });
    case DType::kBf16:
      return FillWith<uint16_t>(row, filler, [](uint64_t x) { return uint16_t(0x3F00 | (x >> 57)); });
    case DType::kBool:
      return FillWith<uint8_t>(row, filler, [](uint64_t x) { return uint8_t(x >> 63); });
    default:
      return FillWith<uint8_t>(row, filler, [](uint64_t x) { return uint8_t(x >> 56); });
  }
}

// The bytes of each of `items` items of a tensor; all of its bytes for every item where its first dimension
// does not count the items.
std::vector<std::span<const std::byte>> ItemBytes(const Tensor& tensor, size_t items) {
  const auto all = tensor.data.span();
  if (std::cmp_not_equal(BatchSize(tensor.shape), items)) {
    return std::vector<std::span<const std::byte>>(items, all);
  }
  std::vector<std::span<const std::byte>> parts;
  if (items == 0) return parts;
  if (tensor.dtype != DType::kBytes) {
    const size_t size = all.size() / items;
    for (size_t i = 0; i < items; ++i) parts.push_back(all.subspan(i * size, size));
    return parts;
  }
  const auto elements = static_cast<size_t>(ElementCount(tensor.shape).value_or(0)) / items;
  size_t offset = 0;
  for (size_t i = 0; i < items; ++i) {
    const size_t begin = offset;
    for (size_t k = 0; k < elements; ++k) {
      uint32_t length = 0;
      std::memcpy(&length, all.data() + offset, sizeof length);
      offset += sizeof length + length;
    }
    parts.push_back(all.subspan(begin, offset - begin));
  }
  return parts;
}

uint64_t ContentHash(std::span<const std::byte> data, uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

std::vector<uint64_t> ItemHashes(const std::vector<const Tensor*>& inputs, size_t items) {
  std::vector<uint64_t> hashes(items, 0);
  for (const Tensor* tensor : inputs) {
    const auto parts = ItemBytes(*tensor, items);
    for (size_t i = 0; i < items; ++i) hashes[i] = ContentHash(parts[i], hashes[i]);
  }
  return hashes;
}

// Where the rows of an output are not the items, each is a function of all of them.
std::vector<uint64_t> RowSeeds(const std::vector<uint64_t>& items, size_t rows, size_t output) {
  std::vector<uint64_t> seeds(rows);
  const uint64_t all = ContentHash(std::as_bytes(std::span(items)), 0);
  for (size_t i = 0; i < rows; ++i)
    seeds[i] = Filler(rows == items.size() ? items[i] : all + i).Next() + output;
  return seeds;
}

Result<Tensor> MakeOutput(const TensorInfo& info, size_t index, const std::vector<uint64_t>& items) {
  Tensor output{.name = info.name, .dtype = info.dtype, .shape = info.shape, .data = {}};
  for (size_t i = 0; i < output.shape.size(); ++i) {
    if (output.shape[i] < 0) output.shape[i] = i == 0 ? static_cast<int64_t>(items.size()) : 1;
  }
  const int64_t count = TRY_CONTEXT(ElementCount(output.shape), fmt::format("output '{}'", info.name));
  if (count > kMaxOutputBytes / static_cast<int64_t>(ByteSize(info.dtype))) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("output '{}' of shape {} would be larger than 4 GiB: send fewer items", info.name,
                            ToString(output.shape)));
  }
  output.data = Bytes::AllocateUninitialized(static_cast<size_t>(count) * ByteSize(info.dtype));
  if (count == 0) return output;
  const auto rows = static_cast<size_t>(BatchSize(output.shape));
  const size_t row_bytes = output.data.size() / rows;
  const auto seeds = RowSeeds(items, rows, index);
  for (size_t i = 0; i < rows; ++i) {
    FillRow(info.dtype, output.data.mutable_span().subspan(i * row_bytes, row_bytes), seeds[i]);
  }
  return output;
}

}  // namespace

Result<EmulatedAnswer> EmulatedAnswer::Create(std::vector<TensorInfo> inputs,
                                              std::vector<TensorInfo> outputs) {
  if (inputs.empty() || outputs.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "an emulated model needs inputs and outputs with their types and shapes: give an ONNX file, or a "
        "config.pbtxt that declares them");
  }
  EmulatedAnswer answer(std::move(inputs), std::move(outputs));
  for (size_t i = 0; i < answer.outputs_.size(); ++i) {
    if (answer.outputs_[i].dtype == DType::kBytes && !answer.repeats_[i]) {
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("output '{}': an emulated model makes no BYTES, unless an input has the same shape",
                      answer.outputs_[i].name));
    }
  }
  return answer;
}

EmulatedAnswer::EmulatedAnswer(std::vector<TensorInfo> inputs, std::vector<TensorInfo> outputs)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  for (const TensorInfo& output : outputs_) {
    const auto same = std::ranges::find_if(inputs_, [&](const TensorInfo& input) {
      return !input.optional && input.dtype == output.dtype && input.shape == output.shape;
    });
    repeats_.push_back(same == inputs_.end() ? std::nullopt
                                             : std::optional(static_cast<size_t>(same - inputs_.begin())));
  }
}

bool EmulatedAnswer::Hashes(const std::vector<size_t>& wanted) const {
  return std::ranges::any_of(wanted, [&](size_t index) { return !repeats_[index]; });
}

Result<std::vector<Tensor>> EmulatedAnswer::Make(const std::vector<const Tensor*>& bound,
                                                 const std::vector<size_t>& wanted) const {
  std::vector<const Tensor*> given = bound;
  std::erase(given, nullptr);  // optional inputs that are left out
  const auto items = static_cast<size_t>(given.empty() ? 1 : BatchSize(given[0]->shape));
  const auto hashes = Hashes(wanted) ? ItemHashes(given, items) : std::vector<uint64_t>{};
  std::vector<Tensor> outputs;
  for (const size_t index : wanted) {
    if (const auto input = repeats_[index]) {
      outputs.push_back(*bound[*input]);
      outputs.back().name = outputs_[index].name;
    } else {
      outputs.push_back(TRY(MakeOutput(outputs_[index], index, hashes)));
    }
  }
  return outputs;
}

}  // namespace weir::infer
