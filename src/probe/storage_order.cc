#include "probe/storage_order.h"

#include <algorithm>
#include <numeric>

#include "base/shuffle.h"

namespace weir::probe {

int64_t GlobalOrder::At(int64_t position) {
  const int64_t epoch = position / samples_;
  if (epoch != epoch_) {
    Random random = seed_.Stream("epoch").Stream(static_cast<uint64_t>(epoch)).MakeRandom();
    std::vector<int64_t> groups(begins_.empty() ? static_cast<size_t>(samples_) : begins_.size() - 1);
    std::iota(groups.begin(), groups.end(), int64_t{0});
    Shuffle(groups, random);
    if (begins_.empty()) {
      order_ = std::move(groups);
    } else {
      order_.clear();
      for (const int64_t group : groups)
        for (int64_t i = begins_[static_cast<size_t>(group)]; i < begins_[static_cast<size_t>(group) + 1];
             ++i)
          order_.push_back(i);
    }
    epoch_ = epoch;
  }
  return order_[static_cast<size_t>(position % samples_)];
}

namespace {

// A bijection of 64 bits that leaves no pattern (the finaliser of SplitMix64).
uint64_t Scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

void EpochReads::Add(int64_t sample) {
  ++samples;
  sum += Scatter(static_cast<uint64_t>(sample));
}

void EpochReads::Merge(const EpochReads& other) {
  samples += other.samples;
  sum += other.sum;
}

Instant StepTimes::Next(Instant ready) {
  deadline_ = end_.value_or(ready);
  stall_ = std::max(Duration{}, ready - deadline_);
  end_ = deadline_ + stall_ + step_;
  return *end_;
}

}  // namespace weir::probe
