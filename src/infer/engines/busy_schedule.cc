#include "infer/engines/busy_schedule.h"

#include <algorithm>

namespace weir::infer {

BusySchedule::BusySchedule(const Options& options)
    : options_(options),
      random_(options.seed.Stream("jitter").MakeRandom()),
      streams_(static_cast<size_t>(options.streams)) {}

BusySchedule::Slot BusySchedule::Reserve(int64_t items, Instant now) {
  Stream& stream = *std::ranges::min_element(streams_, {}, &Stream::busy_until);
  const Duration cost = Cost(items);
  const Instant start = std::max(now, stream.busy_until);
  stream.busy_until = start + cost;
  stream.reserved += cost;
  return {start, stream.busy_until};
}

std::vector<Duration> BusySchedule::BusyUntil(Instant now) const {
  std::vector<Duration> busy;
  for (const Stream& stream : streams_) {
    // The time ahead is one unbroken stretch, because a batch waits only behind another.
    const Duration ahead = std::max(Duration::zero(), stream.busy_until - now);
    busy.push_back(stream.reserved - ahead);
  }
  return busy;
}

Duration BusySchedule::Cost(int64_t items) {
  const Duration told = options_.base + items * options_.per_item;
  if (options_.jitter == 0) return told;
  const double factor = random_.Uniform(1 - options_.jitter, 1 + options_.jitter);
  return FromSeconds(Seconds(told) * factor);
}

}  // namespace weir::infer
