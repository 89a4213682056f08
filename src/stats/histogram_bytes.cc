#include <algorithm>
#include <string>
#include <string_view>

#include "stats/histogram.h"

namespace weir::stats {
namespace {

// Seven bits a byte, the lowest first; the last byte has no high bit (LEB128).
void AppendNumber(std::string& bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

std::optional<uint64_t> TakeNumber(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace

void Histogram::AppendTo(std::string& bytes) const {
  AppendNumber(bytes, static_cast<uint64_t>(count_));
  if (empty()) return;
  for (const int64_t value : {min_, max_}) AppendNumber(bytes, static_cast<uint64_t>(value));
  for (const Wide value : {sum_, squares_}) {
    AppendNumber(bytes, static_cast<uint64_t>(value));
    AppendNumber(bytes, static_cast<uint64_t>(value >> 64));
  }
  AppendNumber(bytes, squares_known_ ? 1 : 0);
  std::string buckets;
  uint64_t number = 0, last = 0;
  for (int slab = 0; slab < kSlabs; ++slab) {
    if (!slabs_[slab]) continue;
    for (int bucket = 0; bucket < std::ssize(*slabs_[slab]); ++bucket) {
      const int64_t count = (*slabs_[slab])[bucket];
      if (count == 0) continue;
      const auto index = (static_cast<uint64_t>(slab) << kSlabBits) + static_cast<uint64_t>(bucket);
      AppendNumber(buckets, index - last);
      AppendNumber(buckets, static_cast<uint64_t>(count));
      last = index;
      ++number;
    }
  }
  AppendNumber(bytes, number);
  bytes += buckets;
}

std::optional<Histogram> Histogram::TakeFrom(std::string_view& bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const auto take = [&](uint64_t most = std::numeric_limits<uint64_t>::max()) {
    const auto value = TakeNumber(bytes);
    return value && *value <= most ? value : std::nullopt;
  };
  Histogram made;
  const auto count = take(kMost);
  if (!count) return std::nullopt;
  if (*count == 0) return made;
  const auto min = take(kMost), max = take(kMost);
  const auto sum_low = take(), sum_high = take(), squares_low = take(), squares_high = take();
  const auto known = take(1), number = take(uint64_t{kSlabs} << kSlabBits);
  if (!min || !max || !sum_low || !sum_high || !squares_low || !squares_high || !known || !number)
    return std::nullopt;
  uint64_t index = 0, counted = 0;
  Place first, last;
  for (uint64_t i = 0; i < *number; ++i) {
    const auto step = take(uint64_t{kSlabs} << kSlabBits);
    const auto here = take(kMost);
    if (!step || !here || *here == 0 || (i > 0 && *step == 0)) return std::nullopt;
    index += *step;
    counted += *here;
    if (index >= uint64_t{kSlabs} << kSlabBits || counted > *count) return std::nullopt;
    last = {static_cast<int>(index >> kSlabBits), static_cast<int>(index & ((uint64_t{1} << kSlabBits) - 1))};
    if (i == 0) first = last;
    made.CountAt(last) += static_cast<int64_t>(*here);
  }
  made.count_ = static_cast<int64_t>(*count);
  made.min_ = static_cast<int64_t>(*min);
  made.max_ = static_cast<int64_t>(*max);
  made.sum_ = static_cast<Wide>(*sum_high) << 64 | *sum_low;
  made.squares_ = static_cast<Wide>(*squares_high) << 64 | *squares_low;
  made.squares_known_ = *known == 1;
  const auto is_at = [](int64_t value, Place place) {
    const Place found = PlaceOf(value);
    return found.slab == place.slab && found.bucket == place.bucket;
  };
  if (counted != *count || !is_at(made.min_, first) || !is_at(made.max_, last)) return std::nullopt;
  return made;
}

}  // namespace weir::stats
