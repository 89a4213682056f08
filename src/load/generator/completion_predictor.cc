#include "load/generator/completion_predictor.h"

#include <algorithm>

namespace weir::load {
namespace {

constexpr Duration kMostSpread = 150us;  // between the quartiles of times
constexpr double kMostAwake = 1.0 / 8;   // of the time

}  // namespace

std::array<Duration, CompletionPredictor::Latest::kCount> CompletionPredictor::Latest::Sorted() const {
  auto sorted = ring_;
  std::ranges::sort(sorted);
  return sorted;
}

void CompletionPredictor::Ended(Instant at, Instant now, bool answered) {
  if (!sent_.empty()) sent_.pop_front();
  if (answered) took_.Add(now - at);
}

std::optional<Instant> CompletionPredictor::Next(Instant now) const {
  constexpr size_t kMiddle = Latest::kCount / 2, kQuarter = Latest::kCount / 4;
  if (sent_.empty() || !took_.full()) return std::nullopt;
  const auto took = took_.Sorted();
  if (took[kMiddle + kQuarter] - took[kQuarter] > kMostSpread) return std::nullopt;
  const Duration awake = awake_.full() ? std::max(kBefore, awake_.Sorted()[kMiddle]) : kBefore;
  const double share = Seconds(awake) * static_cast<double>(sent_.size()) / Seconds(took[kMiddle]);
  const Instant likely = sent_.front() + took[kMiddle];
  if (share > kMostAwake || likely + kAfter <= now) return std::nullopt;
  return likely;
}

}  // namespace weir::load
