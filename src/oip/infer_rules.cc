#include "oip/infer_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"

namespace weir::oip {
namespace {

static_assert(std::endian::native == std::endian::little, "raw tensors are little-endian");

std::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

template <typename T>
Result<T> Expect(std::string_view name, const infer::Parameter& value, std::string_view wanted) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  return Bad(fmt::format("parameter {} is not {}", Quoted(name), wanted));
}

Result<uint64_t> ExpectUnsigned(std::string_view name, const infer::Parameter& value) {
  if (const auto* found = std::get_if<uint64_t>(&value)) return *found;
  if (const auto* found = std::get_if<int64_t>(&value); found && *found >= 0) {
    return static_cast<uint64_t>(*found);
  }
  return Bad(fmt::format("parameter {} is not an unsigned integer", Quoted(name)));
}

// True where a sequence parameter says that there is none.
bool SaysNoSequence(const infer::Parameter& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          return v.empty();
        } else {
          return v == 0;
        }
      },
      value);
}

Status CheckList(std::string_view kind, std::vector<std::string_view> names) {
  if (names.size() > kMaxTensors) return Bad(fmt::format("more than {} {}s", kMaxTensors, kind));
  if (names.size() > 1) std::ranges::sort(names);
  if (!names.empty() && names.front().empty()) return Bad(fmt::format("an {} has no name", kind));
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) return Bad(fmt::format("{} {} is there twice", kind, Quoted(*twice)));
  return {};
}

Status CheckBytesElements(std::span<const std::byte> data, int64_t elements) {
  int64_t found = 0;
  while (!data.empty() && found < elements) {
    uint32_t length = 0;
    if (data.size() < sizeof length) {
      return Bad(fmt::format("element {} has {} of the 4 bytes of its length", found, data.size()));
    }
    std::memcpy(&length, data.data(), sizeof length);
    data = data.subspan(sizeof length);
    if (length > data.size()) {
      return Bad(fmt::format("element {} says {} bytes, {} are left", found, length, data.size()));
    }
    data = data.subspan(length);
    ++found;
  }
  if (found < elements) return Bad(fmt::format("data has {} elements, its shape {}", found, elements));
  if (!data.empty()) return Bad(fmt::format("{} bytes are left over after {} elements", data.size(), found));
  return {};
}

}  // namespace

Result<infer::DType> ReadDType(std::string_view name) {
  if (auto dtype = infer::ParseDType(name)) return *dtype;
  return Bad(fmt::format("unknown datatype {}: use BOOL, UINT8, ..., INT64, FP16, BF16, FP32, FP64 or BYTES",
                         Quoted(name)));
}

Result<int64_t> CountElements(const infer::Tensor& tensor) {
  if (tensor.shape.size() > kMaxRank) {
    return Bad(fmt::format("shape has {} dimensions, at most {} are taken", tensor.shape.size(), kMaxRank));
  }
  const int64_t count = TRY(infer::ElementCount(tensor.shape));
  const size_t least = tensor.dtype == infer::DType::kBytes ? 4 : infer::ByteSize(tensor.dtype);
  if (static_cast<uint64_t>(count) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / least) {
    return Bad(fmt::format("shape {} has more than 2^63 bytes of {}", infer::ToString(tensor.shape),
                           infer::ToString(tensor.dtype)));
  }
  return count;
}

Status CheckSize(infer::DType dtype, int64_t elements, uint64_t size) {
  if (dtype == infer::DType::kBytes) return {};
  const uint64_t wanted = static_cast<uint64_t>(elements) * infer::ByteSize(dtype);
  if (size == wanted) return {};
  return Bad(fmt::format("{} elements of {} are {} bytes, but {} are given", elements, infer::ToString(dtype),
                         wanted, size));
}

Status CheckData(const infer::Tensor& tensor) {
  const int64_t elements = TRY(CountElements(tensor));
  if (tensor.dtype == infer::DType::kBytes) return CheckBytesElements(tensor.data.span(), elements);
  return CheckSize(tensor.dtype, elements, tensor.data.size());
}

Status CheckRegion(const infer::Tensor& input, const RegionPart& region) {
  const Status fits = CheckSize(input.dtype, TRY(CountElements(input)), region.byte_size);
  return fits ? Status() : Context("input " + Quoted(input.name), fits.error());
}

bool IsTensorParameter(std::string_view name) {
  return name.starts_with("binary_data") || name.starts_with("shared_memory_") || name == "classification";
}

Status SetTensorParameter(std::string_view name, const infer::Parameter& value,
                          TensorParameters& parameters) {
  if (name == "binary_data_size") {
    parameters.binary_data_size = TRY(ExpectUnsigned(name, value));
  } else if (name == "binary_data") {
    parameters.binary_data = TRY(Expect<bool>(name, value, "true or false"));
  } else if (name == "classification") {
    const uint64_t count = TRY(ExpectUnsigned(name, value));
    if (count == 0 || count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Bad("parameter 'classification' is not a number of classes above 0");
    }
    parameters.classification = static_cast<int64_t>(count);
  } else if (name == "shared_memory_region") {
    parameters.region = TRY(Expect<std::string>(name, value, "the name of a region"));
  } else if (name == "shared_memory_offset") {
    parameters.offset = TRY(ExpectUnsigned(name, value));
  } else if (name == "shared_memory_byte_size") {
    parameters.byte_size = TRY(ExpectUnsigned(name, value));
  }
  return {};
}

Result<std::optional<RegionPart>> RegionOf(const TensorParameters& parameters) {
  if (!parameters.region) {
    if (!parameters.offset && !parameters.byte_size) return std::optional<RegionPart>();
    return Bad("a part of shared memory is given without shared_memory_region");
  }
  if (parameters.region->empty()) return Bad("parameter 'shared_memory_region' is empty");
  if (!parameters.byte_size) return Bad("parameter 'shared_memory_byte_size' is missing");
  const uint64_t offset = parameters.offset.value_or(0);
  if (offset > std::numeric_limits<uint64_t>::max() - *parameters.byte_size) {
    return Bad("the part of shared memory ends beyond 2^64");
  }
  return RegionPart{.region = *parameters.region, .offset = offset, .byte_size = *parameters.byte_size};
}

Result<RequestedOutput> WishOf(std::string name, const TensorParameters& parameters, bool binary) {
  RequestedOutput wish{.name = std::move(name),
                       .binary = parameters.binary_data.value_or(binary),
                       .classification = parameters.classification.value_or(0),
                       .region = TRY(RegionOf(parameters))};
  if (wish.region && wish.classification > 0) {
    return Bad("classification cannot be written to shared memory: ask for one of the two");
  }
  return wish;
}

Status SetRequestParameter(std::string name, infer::Parameter value, InferRequest& request) {
  if (name == "priority") {
    const uint64_t priority = TRY(ExpectUnsigned(name, value));
    if (priority > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
      return Bad("parameter 'priority' is too large");
    }
    request.request.priority = static_cast<int>(priority);
    return {};
  }
  if (name == "timeout") {
    constexpr uint64_t kMost = 1'000'000'000'000'000;  // 31 years: sums with any Instant fit
    const uint64_t timeout = TRY(ExpectUnsigned(name, value));
    if (timeout > kMost) {
      return Bad(fmt::format("parameter 'timeout' is {} microseconds: use at most 10^15, or 0 for no limit",
                             timeout));
    }
    request.timeout = std::chrono::microseconds(static_cast<int64_t>(timeout));
    return {};
  }
  if (name == "binary_data_output") {
    request.binary_by_default = TRY(Expect<bool>(name, value, "true or false"));
    return {};
  }
  if (name == kDurations) {
    request.request.durations = TRY(Expect<bool>(name, value, "true or false"));
    return {};
  }
  if (name == "sequence_id" || name == "sequence_start" || name == "sequence_end") {
    if (SaysNoSequence(value)) return {};
    return Fail(ErrorCode::kUnsupported,
                fmt::format("parameter '{}': sequences of requests are not supported", name));
  }
  if (name == "triton_enable_empty_final_response") return {};
  if (name == "headers" || name.starts_with("triton_")) {
    return Bad(fmt::format("parameter {} is reserved", Quoted(name)));
  }
  if (request.request.parameters.size() >= kMaxParameters) {
    return Bad(fmt::format("more than {} parameters", kMaxParameters));
  }
  request.request.parameters.insert_or_assign(std::move(name), std::move(value));
  return {};
}

std::span<const DurationParameter> DurationParameters() {
  using infer::ServerDurations;
  static constexpr DurationParameter kParameters[] = {
      {"weir_receive_ns", &ServerDurations::receive},
      {"weir_queue_ns", &ServerDurations::queue},
      {"weir_compute_input_ns", &ServerDurations::compute_input},
      {"weir_compute_infer_ns", &ServerDurations::compute_infer},
      {"weir_compute_output_ns", &ServerDurations::compute_output},
      {"weir_rest_ns", &ServerDurations::rest}};
  return kParameters;
}

bool ResponseParameters::Knows(std::string_view name) {
  return std::ranges::find(DurationParameters(), name, &DurationParameter::name) !=
         DurationParameters().end();
}

Status ResponseParameters::Set(std::string_view name, const infer::Parameter& value) {
  constexpr int64_t kMost = int64_t{1} << 55;  // a year: sums of all parts fit
  const auto known = DurationParameters();
  const auto found = std::ranges::find(known, name, &DurationParameter::name);
  if (found == known.end()) return {};
  const int64_t ns = TRY(Expect<int64_t>(name, value, "a whole number"));
  if (ns < -kMost || ns > kMost) return Bad(fmt::format("parameter {} is {} ns", Quoted(name), ns));
  durations_.*found->part = Duration(ns);
  seen_ |= 1u << (found - known.begin());
  return {};
}

Result<std::optional<infer::ServerDurations>> ResponseParameters::Durations() const {
  if (seen_ == 0) return std::nullopt;
  const auto known = DurationParameters();
  for (size_t i = 0; i < known.size(); ++i) {
    if ((seen_ >> i & 1) == 0) return Bad(fmt::format("parameter '{}' is missing", known[i].name));
  }
  return durations_;
}

Status CheckNames(const InferRequest& request) {
  std::vector<std::string_view> names;
  names.reserve(std::max(request.request.inputs.size(), request.outputs.size()));
  for (const infer::Tensor& input : request.request.inputs) names.push_back(input.name);
  TRY_STATUS(CheckList("input", names));
  names.clear();
  for (const RequestedOutput& output : request.outputs) names.push_back(output.name);
  return CheckList("output", std::move(names));
}

}  // namespace weir::oip
