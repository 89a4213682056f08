#include "watch/webhook_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::watch {

void WebhookQueue::Add(results::WatchEvent event, Instant now) {
  DropOld(now);
  if (waiting_.size() >= options_.most_events) {
    ++counts_.dropped;
    if (waiting_.size() == taken_) return;  // all are under way: the new one goes
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(taken_));
  }
  waiting_.push_back({std::move(event), now});
}

// Those under way keep their place until the request has ended.
void WebhookQueue::DropOld(Instant now) {
  if (taken_ > 0) return;
  while (!waiting_.empty() && now - waiting_.front().since > options_.most_age) {
    waiting_.pop_front();
    ++counts_.dropped;
    again_ = false;
  }
}

std::vector<results::WatchEvent> WebhookQueue::Take(Instant now) {
  DropOld(now);
  if (taken_ > 0 || waiting_.empty() || now < not_before_) return {};
  taken_ = std::min(waiting_.size(), options_.most_in_request);
  std::vector<results::WatchEvent> events;
  for (size_t i = 0; i < taken_; ++i) events.push_back(waiting_[i].event);
  ++counts_.requests;
  if (again_) ++counts_.retries;
  return events;
}

void WebhookQueue::Ended(Outcome outcome, const std::string& words, Instant now) {
  if (outcome == Outcome::kFailed) {
    counts_.error = words;
    pause_ = pause_ == Duration{} ? options_.first_pause : std::min(2 * pause_, options_.longest_pause);
    not_before_ = now + pause_;
    taken_ = 0;
    again_ = true;
    return;
  }
  if (outcome == Outcome::kRefused) counts_.error = words;
  (outcome == Outcome::kTaken ? counts_.posted : counts_.refused) += static_cast<int64_t>(taken_);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  again_ = false;
  pause_ = {};
}

std::optional<Instant> WebhookQueue::NextTake() const {
  if (waiting_.empty() || taken_ > 0) return std::nullopt;
  return not_before_;
}

void WebhookQueue::GiveUp() {
  counts_.dropped += static_cast<int64_t>(waiting_.size());
  waiting_.clear();
  taken_ = 0;
}

bool Passes(EventFilter filter, const results::WatchEvent& event) {
  const auto named = [](const results::WatchEvent::Object& object) { return !object.name.empty(); };
  return filter == EventFilter::kAny || (filter == EventFilter::kObjects && !event.objects.empty()) ||
         std::ranges::any_of(event.objects, named);
}

WebhookQueue::Outcome OutcomeOf(int status) {
  constexpr int kTimeout = 408, kTooEarly = 425, kTooMany = 429;
  if (status >= 200 && status < 300) return WebhookQueue::Outcome::kTaken;
  if (status >= 500 || status == kTimeout || status == kTooEarly || status == kTooMany)
    return WebhookQueue::Outcome::kFailed;
  return WebhookQueue::Outcome::kRefused;
}

}  // namespace weir::watch
