#include "stats/histogram.h"

#include <cmath>
#include <functional>

#include "stats/quantile.h"

namespace weir::stats {

int64_t Histogram::Lowest(Place place) {
  const int64_t leading = place.slab == 0 ? 0 : int64_t{1} << kSlabBits;
  return (leading + place.bucket) << Shift(place.slab);
}

void Histogram::AllocateSlab(int slab) { slabs_[slab] = std::make_unique<Slab>(); }

void Histogram::Merge(const Histogram& other) {
  for (int slab = 0; slab < kSlabs; ++slab) {
    if (!other.slabs_[slab]) continue;
    if (!slabs_[slab]) AllocateSlab(slab);
    std::ranges::transform(*slabs_[slab], *other.slabs_[slab], slabs_[slab]->begin(), std::plus());
  }
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  const bool overflow = __builtin_add_overflow(squares_, other.squares_, &squares_);
  squares_known_ = squares_known_ && other.squares_known_ && !overflow;
}

std::optional<double> Histogram::Mean() const {
  if (empty()) return std::nullopt;
  return static_cast<double>(static_cast<long double>(sum_) / static_cast<long double>(count_));
}

std::optional<double> Histogram::StandardDeviation() const {
  if (count_ < 2 || !squares_known_) return std::nullopt;
  // About the whole number below the mean the sum of squares is a whole number of at most squares_, so it is
  // exact although its terms may wrap around 2^128; about the mean itself it is rest^2 / n less.
  const Wide n = static_cast<Wide>(count_);
  const Wide centre = sum_ / n;
  const Wide about_centre = squares_ - 2 * centre * sum_ + n * centre * centre;
  const auto rest = static_cast<long double>(sum_ % n);
  const long double about_mean =
      static_cast<long double>(about_centre) - rest * rest / static_cast<long double>(count_);
  return static_cast<double>(std::sqrt(about_mean / static_cast<long double>(count_ - 1)));
}

std::optional<int64_t> Histogram::Min() const { return empty() ? std::nullopt : std::optional(min_); }

std::optional<int64_t> Histogram::Max() const { return empty() ? std::nullopt : std::optional(max_); }

std::optional<int64_t> Histogram::AtRank(int64_t rank) const {
  if (rank < 1 || rank > count_) return std::nullopt;
  if (rank == 1) return min_;
  if (rank == count_) return max_;
  int64_t passed = 0;
  for (int slab = 0; slab < kSlabs; ++slab) {
    if (!slabs_[slab]) continue;
    for (int bucket = 0; bucket < std::ssize(*slabs_[slab]); ++bucket) {
      passed += (*slabs_[slab])[bucket];
      if (passed < rank) continue;
      const int64_t middle = Lowest({slab, bucket}) + ((int64_t{1} << Shift(slab)) - 1) / 2;
      return std::clamp(middle, min_, max_);
    }
  }
  return std::nullopt;
}

std::optional<int64_t> Histogram::Quantile(double p) const {
  if (!(p >= 0 && p <= 1)) return std::nullopt;
  return AtRank(NearestRank(p, count_));
}

int64_t Histogram::CountAbove(int64_t value) const {
  if (value < 0) return count_;
  const Place place = PlaceOf(value);
  int64_t above = 0;
  for (int slab = place.slab; slab < kSlabs; ++slab) {
    if (!slabs_[slab]) continue;
    const int first = slab == place.slab ? place.bucket + 1 : 0;
    for (int bucket = first; bucket < std::ssize(*slabs_[slab]); ++bucket) above += (*slabs_[slab])[bucket];
  }
  return above;
}

std::vector<std::pair<int64_t, int64_t>> Histogram::Buckets() const {
  std::vector<std::pair<int64_t, int64_t>> buckets;
  for (int slab = 0; slab < kSlabs; ++slab) {
    if (!slabs_[slab]) continue;
    for (int bucket = 0; bucket < std::ssize(*slabs_[slab]); ++bucket) {
      const int64_t count = (*slabs_[slab])[bucket];
      if (count > 0) buckets.emplace_back(Lowest({slab, bucket}), count);
    }
  }
  return buckets;
}

}  // namespace weir::stats
