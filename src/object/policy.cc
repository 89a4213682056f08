#include "object/policy.h"

#include <algorithm>

namespace weir::object {

bool RetryBudget::TakeRetry() {
  if (tokens_ < kRetryCost) return false;
  tokens_ -= kRetryCost;
  return true;
}

void RetryBudget::Succeeded() { tokens_ = std::min(tokens_ + 1, kTokens); }

Duration Backoff(const BackoffOptions& options, int number, Random& random) {
  Duration most = options.first;
  for (int i = 0; i < number && most < options.longest; ++i) most *= 2;
  return FromSeconds(random.Uniform(0, Seconds(std::min(most, options.longest))));
}

void HedgePolicy::Sent() { tokens_ = std::min(tokens_ + kShare, kMaxTokens); }

void HedgePolicy::Answered(Duration latency) {
  if (latencies_.size() < kWindow) {
    latencies_.push_back(latency);
  } else {
    latencies_[next_] = latency;
    next_ = (next_ + 1) % kWindow;
  }
  if (latencies_.size() < kLeast || since_++ % kLeast != 0) return;
  std::vector<Duration> sorted = latencies_;
  const auto quantile = [&](double share) {
    const auto at =
        sorted.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size() - 1));
    std::ranges::nth_element(sorted, at);
    return *at;
  };
  delay_ = std::max<Duration>({quantile(kQuantile), kLeastOfMedian * quantile(0.5), 1ms});
}

bool HedgePolicy::TakeHedge() {
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void DepthLimit::Succeeded(bool was_full) {
  if (!was_full) return;
  limit_ = std::min<double>(limit_ + (refused_once_ ? 1 / limit_ : 1), options_.most);
}

void DepthLimit::Refused(Instant sent, Instant now) {
  if (refused_once_ && sent < last_cut_) return;
  refused_once_ = true;
  last_cut_ = now;
  limit_ = std::max<double>(limit_ * 0.7, options_.least);
}

}  // namespace weir::object
