// Rules of the protocol that hold over both transports. Every error is of the client: kInvalidArgument, or
// kUnsupported for what the protocol has and this program does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "infer/call.h"
#include "infer/tensor.h"
#include "oip/api.h"

namespace weir::oip {

// The limits of one message. No model comes near; a small message must not become much memory.
inline constexpr size_t kMaxTensors = 16384;  // inputs, and outputs
inline constexpr size_t kMaxRank = 64;
inline constexpr size_t kMaxParameters = 1024;

// ParseDType with a message that is safe to show.
Result<infer::DType> ReadDType(std::string_view name);

// The element count of a tensor whose bytes, too, can be counted (kBytes: four for each element at least).
Result<int64_t> CountElements(const infer::Tensor& tensor);

// `size` bytes are right for a tensor of this type and so many elements; any size is for kBytes.
Status CheckSize(infer::DType dtype, int64_t elements, uint64_t size);
// tensor.data is: of the right size, and for kBytes every length within it and nothing left over.
Status CheckData(const infer::Tensor& tensor);

// The part of a region that an input is said to lie in has its size; any size is for kBytes.
Status CheckRegion(const infer::Tensor& input, const RegionPart& region);

// The known parameters of an input or an output; others are passed over.
struct TensorParameters {
  std::optional<uint64_t> binary_data_size;
  std::optional<bool> binary_data;
  std::optional<int64_t> classification;
  std::optional<std::string> region;
  std::optional<uint64_t> offset, byte_size;
};
bool IsTensorParameter(std::string_view name);  // one that SetTensorParameter knows
Status SetTensorParameter(std::string_view name, const infer::Parameter& value, TensorParameters& parameters);
// The region named, whole: a name needs its size, and a size or offset needs the name.
Result<std::optional<RegionPart>> RegionOf(const TensorParameters& parameters);
// An output's wish; `binary` where its parameters do not say.
Result<RequestedOutput> WishOf(std::string name, const TensorParameters& parameters, bool binary);

// Puts a parameter of the request where it belongs: priority, timeout (microseconds), binary_data_output and
// kDurations have places of their own; sequence_* must say that there is no sequence; "headers" and
// "triton_*" are reserved (triton_enable_empty_final_response is passed over: one request has one answer
// here); all others are kept as they are.
Status SetRequestParameter(std::string name, infer::Parameter value, InferRequest& request);

// The parameter of a request that asks for durations, and the name of the extension.
inline constexpr std::string_view kDurations = "weir_durations";
// The durations of a response as its parameters, in nanoseconds: one for each part, all of them or none.
struct DurationParameter {
  std::string_view name;
  Duration infer::ServerDurations::* part;
};
std::span<const DurationParameter> DurationParameters();

// The parameters of a response as they come.
class ResponseParameters {
 public:
  static bool Knows(std::string_view name);  // others Set passes over
  Status Set(std::string_view name, const infer::Parameter& value);
  // Nothing where there are none.
  Result<std::optional<infer::ServerDurations>> Durations() const;

 private:
  infer::ServerDurations durations_;
  unsigned seen_ = 0;  // a bit for each part
};

// Names are there, and not twice; not too many.
Status CheckNames(const InferRequest& request);

}  // namespace weir::oip
