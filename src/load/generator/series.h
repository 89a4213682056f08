// How figures went over a run of unknown length: sums over equal slices of time, which are joined in pairs
// when they become too many. Bounded memory; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace weir::load {

class Series {
 public:
  struct Slice {
    int64_t count = 0;
    double sum = 0;
  };
  static constexpr size_t kMost = 512;  // slices; at least half as many once they have been joined

  // `at` >= 0: since the start of the run.
  void Add(Duration at, double value) {
    Slice& slice = At(at);
    slice.count += 1;
    slice.sum += value;
  }
  // There are slices up to `at`, empty ones where nothing was added.
  void Cover(Duration at) { At(at); }

  // Adds the slices of another series of the same run, whose start is the same moment.
  void Merge(Series other) {
    while (width_ < other.width_) Join();
    while (other.width_ < width_) other.Join();
    slices_.resize(std::max(slices_.size(), other.slices_.size()));
    for (size_t i = 0; i < other.slices_.size(); ++i) {
      slices_[i].count += other.slices_[i].count;
      slices_[i].sum += other.slices_[i].sum;
    }
  }
  // A series of these slices; nullopt unless the width is a millisecond times a power of two.
  static std::optional<Series> Make(Duration width, std::vector<Slice> slices) {
    if (width < 1ms || width > 1h * 24 * 365 || width % 1ms != Duration{} || slices.size() > kMost)
      return std::nullopt;
    Series made;
    while (made.width_ < width) made.width_ *= 2;
    if (made.width_ != width) return std::nullopt;
    made.slices_ = std::move(slices);
    return made;
  }

  Duration width() const { return width_; }
  const std::vector<Slice>& slices() const { return slices_; }

 private:
  Slice& At(Duration at) {
    auto index = static_cast<size_t>(at / width_);
    while (index >= kMost) {
      Join();
      index = static_cast<size_t>(at / width_);
    }
    if (index >= slices_.size()) slices_.resize(index + 1);
    return slices_[index];
  }
  void Join() {
    for (size_t i = 0; i < slices_.size(); ++i) {
      if (i % 2 == 0) {
        slices_[i / 2] = slices_[i];
      } else {
        slices_[i / 2].count += slices_[i].count;
        slices_[i / 2].sum += slices_[i].sum;
      }
    }
    slices_.resize((slices_.size() + 1) / 2);
    width_ *= 2;
  }

  Duration width_ = 1ms;
  std::vector<Slice> slices_;
};

}  // namespace weir::load
