// Boxes of one frame to the tracks of earlier ones, so that a person is embedded once in a while only. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::watch {

// A rectangle in shares of the picture, 0 to 1.
struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  float area() const { return x1 > x0 && y1 > y0 ? (x1 - x0) * (y1 - y0) : 0; }
  bool operator==(const Box&) const = default;
};

// Intersection over union, 0 to 1; 0 if both are empty.
float Overlap(const Box& a, const Box& b);

struct Detection {
  Box box;
  float score = 0;
  int class_index = 0;
};

// The tracks of one stream: each box continues the track that it overlaps most, greedily, the largest overlap
// first (Bochinski et al. 2017, High-Speed Tracking-by-Detection Without Using Image Information). One thread
// at a time.
class Tracker {
 public:
  struct Options {
    float least_overlap = 0.3F;
    int max_missed = 10;   // frames without its box after which a track ends
    int embed_every = 10;  // frames from one embedding of a track to the next, at least 1
  };
  explicit Tracker(Options options) : options_(options) {}

  struct Match {
    int64_t track = 0;   // from 1, never used again
    bool embed = false;  // the track is new, or its last embedding is embed_every frames old
  };
  // Continues the tracks by the boxes of the next frame. One Match for each detection, in its order.
  std::vector<Match> Update(std::span<const Detection> detections);
  int64_t tracks() const { return next_ - 1; }  // begun so far

 private:
  struct Track {
    int64_t id = 0;
    Box box;
    int class_index = 0;
    int missed = 0;
    int since_embedded = 0;
  };
  const Options options_;
  std::vector<Track> tracks_;
  int64_t next_ = 1;
};

}  // namespace weir::watch
