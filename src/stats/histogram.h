// Counts of whole numbers from 0 up (nanoseconds, say), each known to within a thousandth of itself, in
// memory that does not grow with how many there are.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::stats {

// The buckets of Tene's HdrHistogram at three significant digits: values below 2048 have a bucket each, and
// every power of two above is divided in 1024, so that no bucket is wider than 1/1024 of its lowest value.
// Every int64_t has its bucket. Takes 8 KiB for each power of two that was seen, 432 KiB at the very most.
// Count, mean, standard deviation, least and greatest are exact: they do not come from the buckets.
// Not thread-safe. One that was moved from can only be assigned to or destroyed.
class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram& other) { Merge(other); }
  Histogram(Histogram&& other) noexcept = default;
  Histogram& operator=(const Histogram& other) { return *this = Histogram(other); }
  Histogram& operator=(Histogram&& other) noexcept = default;

  // A value below 0, which a difference of two clocks may be, counts as 0; a count below 1 adds nothing.
  void Add(int64_t value) { Add(value, 1); }
  void Add(int64_t value, int64_t count);
  // Afterwards this is what it would be had every value of `other` been added to it.
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::optional<double> Mean() const;
  // The deviation of a sample: divided by count - 1. Nullopt below two values, or if the squares sum to
  // 2^128, as those of 10^10 values of three days in nanoseconds would.
  std::optional<double> StandardDeviation() const;
  std::optional<int64_t> Min() const;
  std::optional<int64_t> Max() const;

  // The value at this place, from 1, were all put in order: the middle of its bucket, or Min or Max where
  // that lies beyond them, so within 1/2000. The first and the last are exact. Nothing for a rank that is
  // not in 1 .. count.
  std::optional<int64_t> AtRank(int64_t rank) const;
  // The value at NearestRank(p, count). Nothing without values, or for a p that is not in [0, 1].
  std::optional<int64_t> Quantile(double p) const;
  // How many values lie in buckets above that of `value`: those up to 1/1000 above it may be missed, none
  // that is not above it is counted.
  int64_t CountAbove(int64_t value) const;

  // The lowest value of every bucket that is not empty, and its count, in order of values.
  std::vector<std::pair<int64_t, int64_t>> Buckets() const;

  // Appends all that this is, for another process: some bytes for each bucket that is not empty.
  void AppendTo(std::string& bytes) const;
  // Takes from the front of `bytes` what AppendTo wrote. Nullopt if the bytes are of no histogram: buckets
  // that do not add up to the count, or a least or greatest value outside of theirs.
  static std::optional<Histogram> TakeFrom(std::string_view& bytes);

 private:
  using Wide = unsigned __int128;
  static constexpr int kSlabBits = 10;
  static constexpr int kSlabs = 64 - kSlabBits;  // 0 .. 1023, and one for each power of two from 2^10 to 2^62
  using Slab = std::array<int64_t, size_t{1} << kSlabBits>;

  struct Place {
    int slab = 0;
    int bucket = 0;
  };
  static Place PlaceOf(int64_t value);
  static int Shift(int slab) { return slab == 0 ? 0 : slab - 1; }  // a bucket there is 2^Shift wide
  static int64_t Lowest(Place place);
  int64_t& CountAt(Place place);
  void AllocateSlab(int slab);

  std::array<std::unique_ptr<Slab>, kSlabs> slabs_;
  int64_t count_ = 0;
  int64_t min_ = std::numeric_limits<int64_t>::max();
  int64_t max_ = 0;
  bool squares_known_ = true;  // squares_ has not overflowed
  Wide sum_ = 0;
  Wide squares_ = 0;
};

inline Histogram::Place Histogram::PlaceOf(int64_t value) {
  constexpr int64_t kBuckets = int64_t{1} << kSlabBits;
  const int slab = std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(value))) - kSlabBits);
  return {slab, static_cast<int>((value >> Shift(slab)) & (kBuckets - 1))};
}

inline int64_t& Histogram::CountAt(Place place) {
  if (!slabs_[place.slab]) [[unlikely]] {
    AllocateSlab(place.slab);
  }
  return (*slabs_[place.slab])[place.bucket];
}

inline void Histogram::Add(int64_t value, int64_t count) {
  if (count < 1) return;
  value = std::max<int64_t>(value, 0);
  CountAt(PlaceOf(value)) += count;
  count_ += count;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  const auto wide_value = static_cast<Wide>(value);
  const auto wide_count = static_cast<Wide>(count);
  sum_ += wide_value * wide_count;
  Wide squares = 0;
  const bool overflow = __builtin_mul_overflow(wide_value * wide_value, wide_count, &squares) ||
                        __builtin_add_overflow(squares_, squares, &squares_);
  squares_known_ = squares_known_ && !overflow;
}

}  // namespace weir::stats
