#include <gtest/gtest.h>

#include "watch/webhook_queue.h"

namespace weir::watch {
namespace {

using Outcome = WebhookQueue::Outcome;
constexpr Instant kStart = Instant(100s);

results::WatchEvent Event(int64_t sequence, const std::string& name = "") {
  results::WatchEvent event{};
  event.sequence = sequence;
  if (!name.empty()) event.objects.push_back({.box = {}, .label = "", .name = name});
  return event;
}

std::vector<int64_t> Sequences(const std::vector<results::WatchEvent>& events) {
  std::vector<int64_t> sequences;
  for (const auto& event : events) sequences.push_back(event.sequence);
  return sequences;
}

TEST(WebhookQueue, SendsEventsInOrderAndOneRequestAtATime) {
  WebhookQueue queue({.most_in_request = 2});
  for (int64_t i = 0; i < 3; ++i) queue.Add(Event(i), kStart);
  EXPECT_EQ(Sequences(queue.Take(kStart)), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(queue.Take(kStart).empty()) << "a request is under way";
  queue.Ended(Outcome::kTaken, "", kStart);
  EXPECT_EQ(Sequences(queue.Take(kStart)), (std::vector<int64_t>{2}));
  queue.Ended(Outcome::kTaken, "", kStart);
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.counts().posted, 3);
  EXPECT_EQ(queue.counts().requests, 2);
  EXPECT_EQ(queue.counts().retries, 0);
}

TEST(WebhookQueue, TriesTheSameEventsAgainAfterAPauseThatDoubles) {
  WebhookQueue queue({.first_pause = 1s, .longest_pause = 3s});
  queue.Add(Event(7), kStart);
  Instant now = kStart;
  for (const Duration pause : {1s, 2s, 3s, 3s}) {
    EXPECT_EQ(Sequences(queue.Take(now)), std::vector<int64_t>{7});
    queue.Ended(Outcome::kFailed, "status 503", now);
    EXPECT_EQ(queue.NextTake(), now + pause);
    EXPECT_TRUE(queue.Take(now + pause - 1ns).empty());
    now += pause;
  }
  EXPECT_FALSE(queue.Take(now).empty());
  queue.Ended(Outcome::kTaken, "", now);
  EXPECT_EQ(queue.counts().posted, 1);
  EXPECT_EQ(queue.counts().retries, 4);
  EXPECT_EQ(queue.counts().error, "status 503");
}

TEST(WebhookQueue, GivesUpWhatIsTooOldOrTooMany) {
  WebhookQueue queue({.most_events = 3, .most_age = 10s});
  for (int64_t i = 0; i < 5; ++i) queue.Add(Event(i), kStart);
  EXPECT_EQ(queue.counts().dropped, 2);
  EXPECT_EQ(Sequences(queue.Take(kStart)), (std::vector<int64_t>{2, 3, 4})) << "the newest stay";
  queue.Add(Event(5), kStart + 1s);
  EXPECT_EQ(queue.counts().dropped, 3) << "those under way keep their place";
  queue.Ended(Outcome::kFailed, "reset", kStart + 1s);
  EXPECT_TRUE(queue.Take(kStart + 11s).empty());
  EXPECT_EQ(queue.counts().dropped, 6);
  EXPECT_TRUE(queue.idle());
}

TEST(WebhookQueue, DoesNotRepeatWhatIsRefused) {
  WebhookQueue queue({});
  queue.Add(Event(1), kStart);
  EXPECT_EQ(queue.Take(kStart).size(), 1U);
  queue.Ended(Outcome::kRefused, "status 404", kStart);
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.counts().refused, 1);
  queue.Add(Event(2), kStart);
  queue.GiveUp();
  EXPECT_EQ(queue.counts().dropped, 1);
}

TEST(OutcomeOf, RepeatsWhatMayPass) {
  EXPECT_EQ(OutcomeOf(204), Outcome::kTaken);
  for (const int status : {408, 429, 500, 503}) EXPECT_EQ(OutcomeOf(status), Outcome::kFailed) << status;
  for (const int status : {301, 400, 401, 404, 413})
    EXPECT_EQ(OutcomeOf(status), Outcome::kRefused) << status;
}

TEST(EventFilter, PassesObjectsAndNames) {
  results::WatchEvent nameless = Event(1);
  nameless.objects.emplace_back();
  for (const auto& [filter, empty, object, named] : {std::tuple{EventFilter::kAny, true, true, true},
                                                     {EventFilter::kObjects, false, true, true},
                                                     {EventFilter::kNamed, false, false, true}}) {
    EXPECT_EQ(Passes(filter, Event(1)), empty) << WordOf(kEventFilters, filter);
    EXPECT_EQ(Passes(filter, nameless), object) << WordOf(kEventFilters, filter);
    EXPECT_EQ(Passes(filter, Event(1, "Ada")), named) << WordOf(kEventFilters, filter);
  }
}

}  // namespace
}  // namespace weir::watch
