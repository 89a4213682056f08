// Frames of all streams through decoding, models and look-up, the earliest deadline first.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "watch/deadline_queue.h"
#include "watch/detections.h"
#include "watch/frame.h"
#include "watch/live_view.h"
#include "watch/source.h"
#include "watch/stream_clock.h"
#include "watch/tracker.h"
#include "watch/watched_model.h"

namespace weir::watch {

// A person or thing in a frame, or the frame as a whole.
struct FoundObject {
  std::optional<Detection> detection;
  std::optional<int64_t> track;
  std::optional<int> class_index;    // by the classification model
  std::optional<double> score;       // of that class
  std::string name;                  // of the identity; empty: not known, or not looked up
  std::optional<double> similarity;  // cosine
  bool embedded = false;             // in this frame
};

// The findings of one frame, and its picture if it was answered.
struct FrameResult {
  std::vector<FoundObject> objects;
  Picture picture;
};

// Names for embeddings. Thread-safe.
class IdentityLookup {
 public:
  struct Answer {
    std::string name;  // empty: nobody that is enrolled
    double similarity = 0;
  };
  virtual ~IdentityLookup() = default;
  // `embeddings`: unit vectors of one frame. One answer for each.
  virtual Result<std::vector<Answer>> Find(const std::vector<std::vector<float>>& embeddings) = 0;
};

// Told of each frame's end. Thread-safe; must not block.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  virtual void Ended(const FrameRecord& record, const FrameResult& result) = 0;
  // Frames that never arrived; below 0 for frames counted as lost that came after all.
  virtual void Lost(int stream, int64_t frames) = 0;
  // A fault of a stream: a kind of the list in watch.json, and words.
  virtual void Fault(int stream, std::string_view kind, const std::string& message) = 0;
  // The difference between the capture time that the source gave and the burnt-in one.
  virtual void CaptureError(int stream, Duration error) = 0;
};

// Thread-safe. Its threads "decode-N" take frames, decode and scale those that are still coded, and do what
// is left to do when a model has answered. A frame has exactly one fate: it is answered, or dropped for one
// cause.
class Pipeline {
 public:
  enum class Task { kClassify, kEmbed };
  struct Options {
    Duration deadline = 100ms;
    int streams = 1;
    int workers = 1;
    bool latest_only = true;
    Task task = Task::kEmbed;
    DetectionHead head{};  // of `detect`
    DetectionOptions detection;
    Tracker::Options tracking;
    int64_t max_pixels = int64_t{8192} * 8192;
    Duration lookup_delay{};  // added to each look-up, as a slower storage would
  };
  struct Parts {
    WatchedModel* detect = nullptr;  // none: the whole frame goes to `infer`
    WatchedModel* infer = nullptr;   // none: detection is all
    IdentityLookup* lookup = nullptr;
    FrameSink* sink = nullptr;
  };
  // All that is referred to must outlive it. REQUIRES: detect or infer, and a sink.
  Pipeline(Parts parts, Options options, const Clock& clock);
  // Drops what still waits as kStopped, waits for what is in flight, and joins.
  ~Pipeline();

  // Takes a frame of a stream; its fate is reported to the sink, possibly before Offer returns. One thread at
  // a time for each stream.
  void Offer(int stream, SourceFrame frame);
  // Blocks until every frame offered has its fate. No Offer meanwhile.
  void Drain();
  // As Drain, but frames that still wait are dropped as kStopped.
  void Stop();

  struct Busy {
    Duration decode{}, lookup{};  // CPU time of decoding, time of look-ups; summed over threads
    int64_t tracks = 0;
  };
  Busy busy() const;
  int64_t TracksOf(int stream) const;
  ClockOffset::Report clock_report() const;

 private:
  struct Frame;
  using FramePtr = std::shared_ptr<Frame>;
  // The rest of a frame's work, after a model's answer or the look-up's delay.
  struct Job {
    FramePtr frame;
    size_t object = 0;  // whose answer this is
    enum class Kind { kDetected, kInferred, kLookedUp } kind = Kind::kDetected;
    Result<infer::Response> response;
  };
  struct Tools;
  struct PerStream;

  void Work(const std::stop_token& stop);
  void Begin(const FramePtr& frame, Tools& tools);
  bool Decode(Frame& frame, Tools& tools);
  void NoteSize(const Frame& frame, int width, int height);
  bool ReadStamp(Frame& frame);
  void SubmitFirst(const FramePtr& frame, Tools& tools);
  void Continue(Job job, Tools& tools);
  void Detected(const FramePtr& frame, const infer::Response& response, Tools& tools);
  void Inferred(const FramePtr& frame, size_t object, const infer::Response& response);
  void SubmitObject(const FramePtr& frame, size_t object, const Box& region, Tools& tools);
  void AllInferred(const FramePtr& frame);
  void Finish(const FramePtr& frame);
  void Drop(const FramePtr& frame, DropCause cause);
  void FailedCall(const FramePtr& frame, const Error& error);
  void Push(Job job);
  void CountCall();
  void Release();
  void DropWaiting(const std::vector<DeadlineQueue::Dropped>& dropped);

  const Parts parts_;
  const Options options_;
  const Clock& clock_;
  const int most_in_flight_;
  std::vector<std::unique_ptr<PerStream>> streams_;

  mutable Mutex mutex_;
  CondVar changed_, idle_;
  DeadlineQueue queue_ GUARDED_BY(mutex_);
  ServiceEstimate estimate_ GUARDED_BY(mutex_);
  std::map<int64_t, FramePtr> waiting_ GUARDED_BY(mutex_);  // those in queue_, by id
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  std::multimap<Instant, Job> timed_ GUARDED_BY(mutex_);  // jobs for later
  std::set<int> busy_streams_ GUARDED_BY(mutex_);         // a frame of theirs is being decoded
  int in_flight_ GUARDED_BY(mutex_) = 0;                  // frames taken that have no fate yet
  int unanswered_ GUARDED_BY(mutex_) = 0;                 // calls whose answer no worker has taken up
  int64_t next_id_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  ClockOffset offset_ GUARDED_BY(mutex_);
  Busy busy_ GUARDED_BY(mutex_);

  std::vector<std::jthread> threads_;
};

}  // namespace weir::watch
