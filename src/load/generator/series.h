// How figures went over a run of unknown length: sums over equal slices of time, which are joined in pairs
// when they become too many. Bounded memory; pure.
#pragma once

#include <cstdint>
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
