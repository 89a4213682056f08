#include "load/generator/tally.h"

#include <algorithm>
#include <numeric>

namespace weir::load {
namespace {

int64_t Nanoseconds(Duration d) { return std::max<int64_t>(0, d.count()); }

}  // namespace

void Tally::Add(const Sample& sample, Instant from, const std::optional<infer::ServerDurations>& server) {
  ended[static_cast<size_t>(sample.outcome)] += 1;
  if (windows) windows->Add(sample, from);
  if (sample.outcome == Outcome::kUnsent) return;
  slip.Add(Nanoseconds(sample.slip()));
  if (sample.slip() > kLate) ++late;
  if (sample.outcome != Outcome::kAnswered) return;
  response.Add(Nanoseconds(sample.response()));
  service.Add(Nanoseconds(sample.service()));
  if (sample.send > Duration{}) send.Add(sample.send.count());
  first_byte.Add(Nanoseconds(sample.first_byte - sample.sent));
  response_series.Add(std::max(Duration{}, sample.planned - from), Seconds(sample.response()));
  if (server) split.Add(sample, *server);
}

void Tally::Merge(const Tally& more) {
  for (size_t i = 0; i < ended.size(); ++i) ended[i] += more.ended[i];
  response.Merge(more.response);
  service.Merge(more.service);
  send.Merge(more.send);
  first_byte.Merge(more.first_byte);
  slip.Merge(more.slip);
  split.Merge(more.split);
  if (!windows)
    windows = more.windows;
  else if (more.windows)
    windows->Merge(*more.windows);
  late += more.late;
  empty_seconds += more.empty_seconds;
  left += more.left;
  answered_within += more.answered_within;
}

int64_t Tally::planned() const { return std::accumulate(ended.begin(), ended.end(), int64_t{0}); }

}  // namespace weir::load
