// Streams followed for a while: sources on threads of their own, the pipeline, and the result.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "results/watch_result.h"
#include "watch/pipeline.h"
#include "watch/source.h"
#include "watch/stream_spec.h"
#include "watch/tally.h"
#include "watch/watched_model.h"

namespace weir::watch {

// The frames that are left out when a stream is behind.
enum class DropPolicy {
  kLatest,        // only the newest frame of a stream waits
  kNonReference,  // also frames that no other frame needs, before decoding
  kToKeyFrame,    // also everything up to the next key frame, before decoding, once a deadline behind
  kNone,          // frames wait until their deadline
};
std::string_view ToString(DropPolicy policy);  // "latest", "non-reference", "to-key-frame", "none"

struct WatchOptions {
  std::vector<StreamSpec> streams;
  Duration deadline = 100ms;
  Duration duration{};  // 0: until the streams end
  DropPolicy policy = DropPolicy::kLatest;
  SourceOptions source;
  ModelOptions detect, infer;  // without a model: that stage is left out
  Pipeline::Task task = Pipeline::Task::kEmbed;
  DetectionOptions detection;
  Tracker::Options tracking;
  int workers = 0;  // threads that decode; 0: one a usable CPU
  Duration lookup_delay{};
};

// The models of a watch, loaded once for several runs.
struct WatchModels {
  std::unique_ptr<WatchedModel> detect, infer;
  DetectionHead head{};
};
Result<WatchModels> OpenModels(const WatchOptions& options, const Clock& clock);

struct WatchHooks {
  IdentityLookup* lookup = nullptr;
  LiveView* live = nullptr;
  std::function<void(const results::WatchFrame&)> on_frame;
  std::function<void(const results::WatchEvent&)> on_event;
  // About five times a second, on the thread that runs.
  std::function<void(double elapsed_s, const results::WatchResult::Frames&)> progress;
  // A stream's first fault of each kind, when it happens, on the thread that runs.
  std::function<void(const std::string&)> note;
};

// Follows the streams until they end, `options.duration` is over or `stop` is asked for. Threads: "stream-N",
// and the pipeline's. A stream's fault ends or reconnects that stream alone. If no stream ever gave a
// frame: kInvalidArgument where all are refused for good, else kIo, with the first stream's fault.
Result<results::WatchResult> WatchStreams(const WatchOptions& options, const WatchModels& models,
                                          const WatchHooks& hooks, const Clock& clock,
                                          const std::stop_token& stop);

// The bottleneck of a run, from the shares of what each part could do. Pure.
struct LoadShares {
  double cpu = 0;  // of the CPU time this process may use
  double decode_cpu = 0, infer_cpu = 0, lookup_cpu = 0, other_cpu = 0;  // of the same
  std::optional<double> infer;                                          // of an accelerator's time
  double in_time_percent = 100;
  std::map<std::string, double> stage_ms;  // mean time of each stage
};
std::optional<results::Bottleneck> FindStreamBottleneck(const LoadShares& shares);

}  // namespace weir::watch
