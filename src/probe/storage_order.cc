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

Instant StepTimes::Next(Instant ready) {
  deadline_ = end_.value_or(ready);
  stall_ = std::max(Duration{}, ready - deadline_);
  end_ = deadline_ + stall_ + step_;
  return *end_;
}

}  // namespace weir::probe
