// Where the time of answered requests went, of all and of the slowest: by the client's moments and what the
// server told with each answer. Bounded memory; pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "infer/call.h"
#include "load/generator/sample.h"

namespace weir::load {

// In the order of time, but that what lies on either side of the server is one part.
enum class SplitPart : uint8_t {
  kSlip,
  kClientSend,
  kWireAndWait,
  kReceive,
  kQueue,
  kComputeInput,
  kComputeInfer,
  kComputeOutput,
  kServerRest,
  kClientReceive,
};
constexpr int kParts = 10;
std::string_view ToString(SplitPart part);  // the key in results: "slip", "wire_and_wait", ...

// A request's time in nanoseconds, or a mean of such. The parts add up to `response`. Overlaps count once
// (infer::CountOverlapOnce): those of the server's parts, and those of the client's sending with the server's
// receiving. kWireAndWait alone may be below 0: the server claims more time than the client saw.
struct Split {
  double response = 0;
  std::array<double, kParts> parts{};

  double of(SplitPart part) const { return parts[static_cast<size_t>(part)]; }
  Split& Add(const Split& more, double factor = 1);
};
Split SplitOf(const Sample& sample, const infer::ServerDurations& server);

// Sums for each bucket of response times, 64 to a power of two: some hundred buckets as a rule, 4,000 at the
// very most, of 130 bytes each.
class SplitSums {
 public:
  void Add(const Sample& sample, const infer::ServerDurations& server);
  void Merge(const SplitSums& more);

  int64_t count() const { return count_; }
  std::optional<Split> Mean() const;  // nothing where there is none
  // Returns the mean of the requests with the longest response times. The last bucket
  // counts by its mean; its response times differ by at most 1/64. Nothing if there are fewer requests.
  std::optional<Split> MeanOfSlowest(int64_t requests) const;

 private:
  struct Bucket {
    int64_t count = 0;
    Split sum;
  };
  std::map<int64_t, Bucket> buckets_;  // rising with the response time
  int64_t count_ = 0;
};

}  // namespace weir::load
