#include "watch/tracker.h"

#include <algorithm>
#include <cstddef>

namespace weir::watch {

float Overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
  const float shared = both.area();
  const float all = a.area() + b.area() - shared;
  return all > 0 ? shared / all : 0;
}

std::vector<Tracker::Match> Tracker::Update(std::span<const Detection> detections) {
  struct Pair {
    float overlap;
    size_t track, detection;
  };
  std::vector<Pair> pairs;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    for (size_t d = 0; d < detections.size(); ++d) {
      if (tracks_[t].class_index != detections[d].class_index) continue;
      const float overlap = Overlap(tracks_[t].box, detections[d].box);
      if (overlap >= options_.least_overlap) pairs.push_back({overlap, t, d});
    }
  }
  std::ranges::stable_sort(pairs, std::ranges::greater{}, &Pair::overlap);
  std::vector<Match> matches(detections.size());
  std::vector<bool> continued(tracks_.size(), false);
  for (const Pair& pair : pairs) {
    if (continued[pair.track] || matches[pair.detection].track != 0) continue;
    continued[pair.track] = true;
    Track& track = tracks_[pair.track];
    track.box = detections[pair.detection].box;
    track.missed = 0;
    const bool embed = ++track.since_embedded >= options_.embed_every;
    if (embed) track.since_embedded = 0;
    matches[pair.detection] = {track.id, embed};
  }
  for (size_t t = 0; t < continued.size(); ++t) {
    if (continued[t]) continue;
    ++tracks_[t].missed;
    ++tracks_[t].since_embedded;
  }
  std::erase_if(tracks_, [&](const Track& track) { return track.missed > options_.max_missed; });
  for (size_t d = 0; d < detections.size(); ++d) {
    if (matches[d].track != 0) continue;
    matches[d] = {next_, true};
    tracks_.push_back({.id = next_++, .box = detections[d].box, .class_index = detections[d].class_index});
  }
  return matches;
}

}  // namespace weir::watch
