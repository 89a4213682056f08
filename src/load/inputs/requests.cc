#include "load/inputs/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

namespace weir::load {
namespace {

using infer::DType;
using infer::ModelInfo;
using infer::Request;
using infer::Shape;
using infer::TensorInfo;
using infer::ToString;

constexpr int kMostRequests = 1 << 20;
constexpr int64_t kMostTextBytes = 64 << 20;
constexpr size_t kStep = 64;  // bytes from one request to the next: whole elements of every type, aligned
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static_assert(kLetters.size() == 64);

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string Names(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

bool Has(const std::vector<TensorInfo>& tensors, std::string_view name) {
  return std::ranges::find(tensors, name, &TensorInfo::name) != tensors.end();
}

// One input of every request.
struct Part {
  const TensorInfo* info = nullptr;
  Shape shape;
  int64_t elements = 0;
  int64_t bytes = 0;
  bool random = false;
};

// Bytes of one text, where the input is BYTES.
int64_t TextLength(const RequestOptions& options) {
  if (!options.string_data.empty()) return std::ssize(options.string_data);
  return options.fill == RequestOptions::Fill::kZero ? 0 : options.string_length;
}

Result<Shape> ShapeOf(const ModelInfo& model, const TensorInfo& info, const RequestOptions& options) {
  const Shape row = TRY(RowShape(model, info));
  const auto given = options.shapes.find(info.name);
  if (given != options.shapes.end()) {
    if (info.any_rank) return RequestShape(model, given->second, options.batch);
    return RequestShape(model, TRY_CONTEXT(FitShape(row, given->second), "--shape"), options.batch);
  }
  if (std::ranges::any_of(row, [](int64_t dimension) { return dimension < 0; })) {
    return Invalid(fmt::format("shape {} has free dimensions: say them with --shape {}:{}, a number for each",
                               ToString(row), info.name, fmt::join(row, ",")));
  }
  return RequestShape(model, row, options.batch);
}

Result<Part> PlanPart(const ModelInfo& model, const TensorInfo& info, const RequestOptions& options) {
  Part part{.info = &info, .shape = TRY(ShapeOf(model, info, options))};
  part.elements = TRY(infer::ElementCount(part.shape));
  const bool text = info.dtype == DType::kBytes;
  const int64_t each = text ? int64_t{sizeof(uint32_t)} + TextLength(options)
                            : static_cast<int64_t>(infer::ByteSize(info.dtype));
  if (part.elements > kMaxRequestBytes / each) {
    return Invalid(fmt::format("shape {} of {} is more than 1 GiB: make it or the batch smaller",
                               ToString(part.shape), ToString(info.dtype)));
  }
  part.bytes = part.elements * each;
  part.random = options.fill == RequestOptions::Fill::kRandom && part.elements > 0 &&
                !(text && (!options.string_data.empty() || options.string_length == 0));
  return part;
}

Result<std::vector<Part>> Plan(const ModelInfo& model, const RequestOptions& options) {
  std::vector<Part> parts;
  int64_t bytes = 0;
  for (const TensorInfo& info : model.inputs) {
    if (info.optional) continue;
    parts.push_back(TRY_CONTEXT(PlanPart(model, info, options), fmt::format("input \"{}\"", info.name)));
    bytes += parts.back().bytes;
    if (bytes > kMaxRequestBytes)
      return Invalid(
          fmt::format("the inputs of one request of model \"{}\" are more than 1 GiB: make their "
                      "shapes or the batch smaller",
                      model.name));
  }
  return parts;
}

int PoolSize(const std::vector<Part>& parts, const RequestOptions& options) {
  if (std::ranges::none_of(parts, &Part::random)) return 1;
  int64_t text_bytes = 0;
  for (const Part& part : parts)
    if (part.random && part.info->dtype == DType::kBytes) text_bytes += part.bytes;
  if (text_bytes == 0) return options.pool;
  return static_cast<int>(std::clamp<int64_t>(kMostTextBytes / text_bytes, 1, options.pool));
}

// REQUIRES: whole elements.
template <typename T, typename Make>
void FillWith(std::span<std::byte> block, Make make) {
  for (size_t at = 0; at < block.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(block.data() + at, &value, sizeof value);
  }
}

void FillRandom(DType dtype, Random random, std::span<std::byte> block) {
  switch (dtype) {
    case DType::kBool:
      return FillWith<uint8_t>(block, [&] { return static_cast<uint8_t>(random.Next() >> 63); });
    case DType::kFp16:  // 11 and 8 bits are all that 16-bit numbers hold: these are exact
      return FillWith<uint16_t>(
          block, [&] { return *ToFp16(static_cast<double>(random.Next() >> 53) * 0x1.0p-11); });
    case DType::kBf16:
      return FillWith<uint16_t>(block,
                                [&] { return *ToBf16(static_cast<double>(random.Next() >> 56) * 0x1.0p-8); });
    case DType::kFp32:
      return FillWith<float>(block, [&] { return static_cast<float>(random.Next() >> 40) * 0x1.0p-24f; });
    case DType::kFp64:
      return FillWith<double>(block, [&] { return random.Uniform(); });
    default:
      return FillWith<uint64_t>(block, [&] { return random.Next(); });
  }
}

// `write` fills in one text after the other.
template <typename Write>
Bytes MakeTexts(int64_t elements, int64_t length, Write write) {
  const auto prefix = static_cast<uint32_t>(length);
  const size_t stride = sizeof prefix + prefix;
  Bytes texts = Bytes::AllocateUninitialized(static_cast<size_t>(elements) * stride);
  for (std::byte* at = texts.mutable_data(); elements > 0; --elements, at += stride) {
    std::memcpy(at, &prefix, sizeof prefix);
    write(std::span(at + sizeof prefix, prefix));
  }
  return texts;
}

void WriteRandomText(Random& random, std::span<std::byte> text) {
  uint64_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i, bits >>= 6) {
    if (i % 10 == 0) bits = random.Next();  // 6 bits a letter
    text[i] = static_cast<std::byte>(kLetters[bits % 64]);
  }
}

// The bytes of one input for each request of the pool.
std::vector<Bytes> MakePayloads(const Part& part, const RequestOptions& options, int pool) {
  const auto count = static_cast<size_t>(pool);
  const auto bytes = static_cast<size_t>(part.bytes);
  const int64_t length = TextLength(options);
  Random random = options.seed.Stream("requests").Stream(part.info->name).MakeRandom();
  const bool text = part.info->dtype == DType::kBytes;
  if (!part.random && text) {
    return std::vector(count, MakeTexts(part.elements, length, [&](std::span<std::byte> to) {
                         if (!to.empty()) std::memcpy(to.data(), options.string_data.data(), to.size());
                       }));
  }
  if (!part.random) return std::vector(count, Bytes::Allocate(bytes));
  std::vector<Bytes> payloads;
  if (text) {
    for (size_t i = 0; i < count; ++i) {
      payloads.push_back(
          MakeTexts(part.elements, length, [&](std::span<std::byte> to) { WriteRandomText(random, to); }));
    }
    return payloads;
  }
  const size_t rounded = (bytes + kStep - 1) / kStep * kStep;
  Bytes block = Bytes::AllocateUninitialized(rounded + (count - 1) * kStep);
  FillRandom(part.info->dtype, random, block.mutable_span());
  for (size_t i = 0; i < count; ++i) payloads.push_back(block.Slice(i * kStep, bytes));
  return payloads;
}

// `bits` of fraction and exponents from `lowest` on, as IEEE 754 lays them out; `infinity` is the first
// pattern that is not finite. Below 2^lowest the fraction stands alone, which the sum of the two covers.
std::optional<uint16_t> ToSixteenBits(double value, int bits, int lowest, uint64_t infinity) {
  if (!std::isfinite(value)) return std::nullopt;
  const double size = std::abs(value);
  const int exponent = size == 0 ? lowest : std::max(std::ilogb(size), lowest);
  if (exponent > -lowest + 1) return std::nullopt;
  const auto fraction = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, bits - exponent)));
  const uint64_t pattern = (static_cast<uint64_t>(exponent - lowest) << bits) + fraction;
  if (pattern >= infinity) return std::nullopt;
  return static_cast<uint16_t>(pattern | (std::signbit(value) ? 0x8000u : 0u));
}

// Rows that JoinRows puts down, repeated ones among them: its requests begin at multiples of the greatest
// common divisor, the last of them at rows - gcd.
size_t JoinedRows(size_t rows, size_t batch) { return rows - std::gcd(rows, batch) + batch; }

}  // namespace

Status CheckRequestOptions(const ModelInfo& model, const RequestOptions& options) {
  if (model.inputs.empty()) return Invalid(fmt::format("model \"{}\" has no inputs", model.name));
  if (options.batch < 1) return Invalid(fmt::format("a batch of {}: give 1 or more", options.batch));
  if (options.batch > 1 && model.max_batch <= 0) {
    return Invalid(
        fmt::format("model \"{}\" does not batch, and {} rows are asked for: leave the batch at 1, and say "
                    "free dimensions with --shape",
                    model.name, options.batch));
  }
  if (model.max_batch > 0 && options.batch > model.max_batch) {
    return Invalid(
        fmt::format("model \"{}\" takes batches of up to {}, and {} rows are asked for: make the "
                    "batch smaller",
                    model.name, model.max_batch, options.batch));
  }
  for (const auto& [name, shape] : options.shapes) {
    if (!Has(model.inputs, name))
      return Invalid(
          fmt::format("--shape {}: the model has no such input, it has: {}", name, Names(model.inputs)));
  }
  for (const std::string& name : options.outputs) {
    if (!Has(model.outputs, name))
      return Invalid(fmt::format("the model has no output \"{}\", it has: {}", name, Names(model.outputs)));
  }
  return {};
}

Request StartRequest(const ModelInfo& model, const std::string& version,
                     const std::vector<std::string>& outputs) {
  Request request;
  request.model = model.name;
  request.version = version;
  request.outputs = outputs;
  return request;
}

Result<Shape> RowShape(const ModelInfo& model, const TensorInfo& tensor) {
  if (model.max_batch <= 0) return tensor.shape;
  if (tensor.shape.empty())
    return Invalid(
        "the model batches, but tells a shape without a batch dimension: its configuration is "
        "wrong");
  return Shape(tensor.shape.begin() + 1, tensor.shape.end());
}

Result<Shape> FitShape(const Shape& row, const Shape& given) {
  const auto fits = [](int64_t own, int64_t asked) { return asked >= 0 && (own < 0 || own == asked); };
  if (std::ranges::equal(row, given, fits)) return given;
  return Invalid(fmt::format("{} does not fit {} (-1: any; a batch dimension is not said here)",
                             ToString(given), ToString(row)));
}

Shape RequestShape(const ModelInfo& model, const Shape& row, int batch) {
  Shape shape = row;
  if (model.max_batch > 0) shape.insert(shape.begin(), batch);
  return shape;
}

std::vector<Bytes> JoinRows(std::vector<Bytes> rows, int batch) {
  CHECK(!rows.empty() && batch >= 1);
  if (batch == 1) return rows;
  const size_t count = rows.size(), each = static_cast<size_t>(batch);
  const size_t joined = JoinedRows(count, each);
  Bytes block = Bytes::AllocateUninitialized(static_cast<size_t>(JoinedBytes(rows, batch)));
  std::vector<size_t> offsets{0};
  for (size_t i = 0; i < joined; ++i) {
    // A row is let go once it lies in the block, so that the two together need little more than one of them.
    const Bytes row = i < count
                          ? std::exchange(rows[i], {})
                          : block.Slice(offsets[i - count], offsets[i - count + 1] - offsets[i - count]);
    if (!row.empty()) std::memcpy(block.mutable_data() + offsets.back(), row.data(), row.size());
    offsets.push_back(offsets.back() + row.size());
  }
  std::vector<Bytes> requests;
  for (size_t k = 0; k < count / std::gcd(count, each); ++k) {
    const size_t first = k * each % count;
    requests.push_back(block.Slice(offsets[first], offsets[first + each] - offsets[first]));
  }
  return requests;
}

int64_t JoinedBytes(const std::vector<Bytes>& rows, int batch) {
  int64_t bytes = 0;
  const size_t joined = JoinedRows(rows.size(), static_cast<size_t>(batch));
  for (size_t i = 0; i < joined; ++i) bytes += static_cast<int64_t>(rows[i % rows.size()].size());
  return bytes;
}

Bytes ToElement(std::string_view text) {
  CHECK(text.size() <= std::numeric_limits<uint32_t>::max());
  return MakeTexts(1, std::ssize(text), [&](std::span<std::byte> to) {
    if (!text.empty()) std::memcpy(to.data(), text.data(), text.size());
  });
}

std::optional<uint16_t> ToFp16(double value) { return ToSixteenBits(value, 10, -14, 0x7c00); }
std::optional<uint16_t> ToBf16(double value) { return ToSixteenBits(value, 7, -126, 0x7f80); }

Result<std::vector<Request>> MakeRequests(const ModelInfo& model, const std::string& version,
                                          const RequestOptions& options) {
  TRY_STATUS(CheckRequestOptions(model, options));
  if (options.pool < 1 || options.pool > kMostRequests)
    return Invalid(fmt::format("a pool of {} requests: give 1 to {}", options.pool, kMostRequests));
  if (options.string_length < 0)
    return Invalid(fmt::format("texts of {} characters: give 0 or more", options.string_length));
  const bool says_texts =
      !options.string_data.empty() || options.string_length != RequestOptions{}.string_length;
  if (says_texts && std::ranges::find(model.inputs, DType::kBytes, &TensorInfo::dtype) == model.inputs.end())
    return Invalid(fmt::format(
        "model \"{}\" has no input of BYTES: leave --string-data and --string-length out", model.name));
  const std::vector<Part> parts = TRY(Plan(model, options));
  const int pool = PoolSize(parts, options);
  std::vector<Request> requests(static_cast<size_t>(pool), StartRequest(model, version, options.outputs));
  for (const Part& part : parts) {
    std::vector<Bytes> payloads = MakePayloads(part, options, pool);
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].inputs.push_back({.name = part.info->name,
                                    .dtype = part.info->dtype,
                                    .shape = part.shape,
                                    .data = std::move(payloads[i])});
    }
  }
  return requests;
}

}  // namespace weir::load
