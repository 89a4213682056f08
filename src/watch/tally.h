// Counts of frames by fate, and their times. captured = answered + dropped holds at every moment.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "results/watch_result.h"
#include "stats/histogram.h"
#include "watch/pipeline.h"

namespace weir::watch {

// Thread-safe.
class Tally final : public FrameSink {
 public:
  struct Options {
    std::vector<std::string> names;  // of the streams
    Duration deadline{};
    const std::vector<std::string>* labels = nullptr;  // of classes; may be none
    // Called with each frame's line, and with each answered frame's event; may be empty. Thread-safe, must
    // not block.
    std::function<void(const results::WatchFrame&)> on_frame;
    std::function<void(const results::WatchEvent&)> on_event;
    // Called with each answered frame, its event and its stream's number; as above.
    std::function<void(int, const results::WatchEvent&, const FrameResult&)> on_shown;
    Duration lookup_delay{};
    // Wall time less monotonic time, for the times in lines.
    Duration wall_offset{};
  };
  explicit Tally(Options options);
  ~Tally() override;

  void Ended(const FrameRecord& record, const FrameResult& result) override;
  void Lost(int stream, int64_t frames) override;
  void Fault(int stream, std::string_view kind, const std::string& message) override {
    Faults(stream, kind, message, 1);
  }
  void Faults(int stream, std::string_view kind, const std::string& message, int64_t count);
  // The first fault of each kind of each stream since the last call, in words.
  std::vector<std::string> TakeNews();
  void CaptureError(int stream, Duration error) override;
  void Connected(int stream);

  // Fills in the counts, times and streams of a result.
  void Fill(results::WatchResult& result) const;
  results::WatchResult::Frames frames() const;

 private:
  struct Counts;
  results::WatchEvent EventOf(const FrameRecord& record, const FrameResult& result) const;
  results::WatchFrame LineOf(const FrameRecord& record) const;
  results::WatchResult::Frames FramesOf(const Counts& counts) const REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Counts>> streams_ GUARDED_BY(mutex_);
  std::array<stats::Histogram, kStages> stages_ GUARDED_BY(mutex_);
  std::vector<std::string> news_ GUARDED_BY(mutex_);
  stats::Histogram latency_ GUARDED_BY(mutex_), without_delay_ GUARDED_BY(mutex_);
  int64_t in_time_without_ GUARDED_BY(mutex_) = 0;
  int64_t objects_ GUARDED_BY(mutex_) = 0, embeddings_ GUARDED_BY(mutex_) = 0,
                   identified_ GUARDED_BY(mutex_) = 0, lookups_ GUARDED_BY(mutex_) = 0;
};

// Nanoseconds to milliseconds with percentiles; a percentile only where ten values lie beyond it. nullopt
// without values.
std::optional<results::WatchResult::Times> TimesOf(const stats::Histogram& histogram);

}  // namespace weir::watch
