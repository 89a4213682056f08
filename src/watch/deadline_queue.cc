#include "watch/deadline_queue.h"

#include <algorithm>
#include <cmath>

namespace weir::watch {

void ServiceEstimate::Add(Duration measured) {
  const auto value = static_cast<double>(measured.count());
  if (!any_) {
    any_ = true;
    mean_ = value;
    deviation_ = value / 4;
    return;
  }
  const double error = value - mean_;
  mean_ += error / 8;
  deviation_ += (std::abs(error) - deviation_) / 4;
}

void ServiceEstimate::Relax() {
  mean_ *= 0.98;
  deviation_ *= 0.9;
}

std::optional<DeadlineQueue::Dropped> DeadlineQueue::Offer(const Entry& entry) {
  const auto mine = [&](const Waiting& w) { return w.entry.stream == entry.stream; };
  const int most = options_.latest_only ? 1 : options_.max_waiting;
  Waiting added{entry, entry.deadline};
  std::optional<Dropped> dropped;
  if (std::ranges::count_if(waiting_, mine) >= most) {
    const auto oldest = std::ranges::find_if(waiting_, mine);
    added.order = std::min(added.order, oldest->order);
    dropped = Dropped{oldest->entry, DropCause::kSuperseded};
    waiting_.erase(oldest);
  }
  waiting_.push_back(added);
  return dropped;
}

std::optional<DeadlineQueue::Entry> DeadlineQueue::Take(Instant now, Duration expected,
                                                        const std::set<int>& busy,
                                                        std::vector<Dropped>& dropped) {
  std::erase_if(waiting_, [&](const Waiting& w) {
    const bool hopeless = now + expected > w.entry.deadline;
    if (hopeless)
      dropped.push_back({w.entry, now > w.entry.deadline ? DropCause::kLate : DropCause::kExpired});
    return hopeless;
  });
  auto first = waiting_.end();
  for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
    if (busy.contains(each->entry.stream)) continue;
    if (first == waiting_.end() || each->order < first->order) first = each;
  }
  if (first == waiting_.end()) return std::nullopt;
  const Entry entry = first->entry;
  waiting_.erase(first);
  return entry;
}

std::vector<DeadlineQueue::Dropped> DeadlineQueue::Clear() {
  std::vector<Dropped> all;
  for (const Waiting& each : waiting_) all.push_back({each.entry, DropCause::kStopped});
  waiting_.clear();
  return all;
}

}  // namespace weir::watch
