// A watch as others see it while it runs: counts, and each stream's newest answered frame.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mutex.h"
#include "image/decode.h"
#include "image/planar.h"
#include "results/watch_result.h"

namespace weir::watch {

// A frame as it came: a JPEG, planes, or pixels.
struct Picture {
  Bytes jpeg;
  std::shared_ptr<const image::PlanarPixels> planar;
  std::shared_ptr<const image::Pixels> pixels;
};

// Thread-safe.
class LiveView {
 public:
  // A run with so many streams begins; those of an earlier run are gone.
  void Begin(int streams);
  // The counts of the run so far. Its tiles have no events: those come by Show.
  void Update(results::WatchLive state);
  // A frame was answered. One that was captured before the newest one is left out.
  void Show(int stream, const results::WatchEvent& event, Picture picture);

  results::WatchLive State() const;
  // The newest frame as a JPEG; pixels are encoded for this call. kNotFound before a stream's first frame.
  Result<Bytes> Jpeg(int stream) const;

 private:
  struct Shown {
    std::optional<results::WatchEvent> event;
    Picture picture;
  };
  mutable Mutex mutex_;
  results::WatchLive state_ GUARDED_BY(mutex_);
  std::vector<Shown> shown_ GUARDED_BY(mutex_);
};

// The state as a page of Prometheus. Pure.
std::string MetricsText(const results::WatchLive& state);

}  // namespace weir::watch
