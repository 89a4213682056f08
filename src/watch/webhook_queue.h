// Events on their way to a webhook: how many go together, when one is tried again, and which are given up.
// Pure policy: no thread, no network.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/clock.h"
#include "base/error.h"
#include "results/watch_result.h"

namespace weir::watch {

// One thread at a time; the owner guards it.
class WebhookQueue {
 public:
  struct Options {
    size_t most_events = 10'000;  // that wait; the oldest goes beyond it
    size_t most_in_request = 100;
    Duration most_age = 60s;       // of an event that waits; older ones go
    Duration first_pause = 500ms;  // after a failure; it doubles
    Duration longest_pause = 10s;
  };
  // How a request ended.
  enum class Outcome {
    kTaken,    // status 2xx
    kRefused,  // no later attempt can succeed: the events are given up
    kFailed,   // it may succeed later
  };

  explicit WebhookQueue(Options options) : options_(options) {}

  void Add(results::WatchEvent event, Instant now);
  // The events of the next request, in order; none where nothing waits, one is under way, or a pause lasts.
  // Each batch is followed by an Ended.
  std::vector<results::WatchEvent> Take(Instant now);
  // Ends the batch that was taken. `words` say why it failed.
  void Ended(Outcome outcome, const std::string& words, Instant now);
  // The moment of the next Take that may give something; nullopt where nothing waits.
  std::optional<Instant> NextTake() const;
  // Gives up all that wait and the batch that was taken.
  void GiveUp();
  bool idle() const { return waiting_.empty() && taken_ == 0; }
  const results::WatchResult::Webhook& counts() const { return counts_; }

 private:
  struct Waiting {
    results::WatchEvent event;
    Instant since{};
  };
  void DropOld(Instant now);

  const Options options_;
  std::deque<Waiting> waiting_;  // the first `taken_` are under way
  size_t taken_ = 0;
  bool again_ = false;  // the first request failed before
  Duration pause_{};
  Instant not_before_{};
  results::WatchResult::Webhook counts_;
};

// The events that a webhook gets.
enum class EventFilter { kAny, kObjects, kNamed };
inline constexpr Choices<EventFilter, 3> kEventFilters{
    {{EventFilter::kAny, "any"}, {EventFilter::kObjects, "objects"}, {EventFilter::kNamed, "named"}}};
bool Passes(EventFilter filter, const results::WatchEvent& event);

// Returns what a status of HTTP means for the events.
WebhookQueue::Outcome OutcomeOf(int status);

}  // namespace weir::watch
