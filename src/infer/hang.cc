#include "infer/hang.h"

#include <algorithm>

namespace weir::infer {
namespace {

constexpr int kTimesExpected = 10;
constexpr Duration kAtLeast = 10s;
constexpr Duration kLongestExpected = 24h;  // ten times it does not overflow

}  // namespace

void ExpectedTime::Add(Duration took, size_t bytes) { last_[count_++ % last_.size()] = {took, bytes}; }

std::optional<Duration> ExpectedTime::Of(size_t bytes) const {
  if (count_ == 0) return std::nullopt;
  double longest = 0;
  for (size_t i = 0; i < std::min(count_, last_.size()); ++i) {
    const auto one = static_cast<double>(std::max<size_t>(1, last_[i].bytes));
    longest = std::max(longest, Seconds(last_[i].took) * std::max(1.0, static_cast<double>(bytes) / one));
  }
  return FromSeconds(std::min(longest, Seconds(kLongestExpected)));
}

std::optional<Hang> JudgeHang(Instant since, std::optional<Duration> expected, Instant now) {
  if (!expected) return std::nullopt;
  const Duration running = now - since;
  if (running < kAtLeast || running < kTimesExpected * *expected) return std::nullopt;
  return Hang{running, *expected};
}

}  // namespace weir::infer
