// The result of watching live streams, as `weir watch --json` prints it, and its frame records and events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/bottleneck.h"
#include "results/monitor_result.h"

namespace weir::results {

struct WatchResult {
  // captured = answered + the sum of dropped. In time: answered within the deadline of their capture.
  struct Frames {
    int64_t captured = 0, answered = 0, in_time = 0;
    std::map<std::string, int64_t> dropped;  // by cause
    bool operator==(const Frames&) const = default;
  };
  // Milliseconds of answered frames. A percentile is absent where too few frames support it.
  struct Times {
    int64_t n = 0;
    double mean = 0, min = 0, max = 0;
    std::optional<double> p50, p90, p95, p99, p99_9;
    bool operator==(const Times&) const = default;
  };
  struct Fault {
    std::string kind;  // of the closed list in watch.json
    int64_t count = 0;
    std::string message;  // the first one's
    bool operator==(const Fault&) const = default;
  };
  // Wall time against the monotonic clock of this host, while the program ran.
  struct ClockReport {
    double offset_change_ms = 0;
    std::optional<double> drift_ppm;
    int64_t steps = 0;
    double largest_step_ms = 0;
    bool operator==(const ClockReport&) const = default;
  };
  struct Stream {
    std::string name;
    Frames frames;
    std::optional<double> in_time_percent;
    std::optional<Times> latency_ms;                // from capture to answer
    std::map<std::string, int64_t> capture_source;  // frames by the origin of their capture time
    std::optional<Times>
        capture_error_ms;  // |the source's own capture time - the burnt-in one|, where both are known
    int64_t connects = 0;
    std::vector<Fault> faults;
    std::optional<int64_t> produced;  // frames that a made stream captured: the truth
    int64_t tracks = 0;
    bool operator==(const Stream&) const = default;
  };
  // One trial of --find-max.
  struct Trial {
    int64_t streams = 0;
    double in_time_percent = 0;
    bool holds = false;
    bool confirms = false;
    std::optional<double> p99_ms;
    std::optional<Bottleneck> bottleneck;
    bool operator==(const Trial&) const = default;
  };
  struct FindMax {
    int64_t streams = 0;           // the most that held in every confirmation; 0: not even one
    int64_t confirmations = 0;     // runs at that number that held
    bool limited_by_most = false;  // the search ended at its own limit: more may hold
    std::vector<Trial> trials;
    std::optional<Bottleneck> bottleneck;  // at the least number that did not hold
    bool operator==(const FindMax&) const = default;
  };
  // Shares of what each part could do, 0 to 1. `infer` is the engine's, or the CPU's for it.
  struct Busy {
    double cpu = 0, decode = 0, identify = 0, infer = 0;
    bool operator==(const Busy&) const = default;
  };
  struct StorageDelay {
    double delay_us = 0;
    int64_t lookups = 0;
    double p99_ms = 0;          // with the delay
    double p99_without_ms = 0;  // the same frames, the delay taken off
    double in_time_percent = 0, in_time_without_percent = 0;
    std::string text;
    bool operator==(const StorageDelay&) const = default;
  };

  // Events sent to a webhook.
  struct Webhook {
    int64_t posted = 0;    // events that the receiver took
    int64_t requests = 0;  // sent, repeated ones too
    int64_t retries = 0;   // of these, the repeated ones
    int64_t refused = 0;   // events that the receiver refused for good
    int64_t dropped = 0;   // events that waited too long, or were too many
    std::string error;     // of the last request that failed; empty: absent
    bool operator==(const Webhook&) const = default;
  };

  std::string model;
  std::optional<std::string> detector, identities;
  std::string engine;
  double deadline_ms = 0;
  std::string policy;
  int64_t streams = 0;
  double wall_s = 0;
  bool interrupted = false;
  Frames frames;
  std::optional<double> in_time_percent;
  std::optional<Times> latency_ms;
  std::map<std::string, Times> stages_ms;
  std::vector<Stream> per_stream;
  ClockReport clock;
  std::optional<Resources> resources;         // but of --find-max
  std::optional<Resources> server_resources;  // of the server, where it was watched
  int64_t objects = 0, embeddings = 0, identified = 0;
  Busy busy;
  double cpu_ms_per_frame = 0;  // of this process, by captured frames, made sources left out
  double made_cpu_s = 0;        // of made sources; 0: absent
  std::optional<Bottleneck> bottleneck;
  std::optional<FindMax> find_max;
  std::optional<StorageDelay> storage_delay;
  std::optional<Webhook> webhook;
  int64_t lines_dropped = 0;  // of --frames and --events, where the disk was too slow; 0: absent
  Json provenance;
  std::string command;

  Json ToJson() const;
  static Result<WatchResult> FromJson(
      const Json& json);  // kCorrupt names the key; kUnsupported for another schema_version
  bool operator==(const WatchResult&) const = default;
};

// One line of --frames: one frame and its fate.
struct WatchFrame {
  std::string stream;
  int64_t sequence = 0;
  std::optional<int64_t> counter;
  std::string fate;                  // "answered", or a cause of `dropped`
  std::optional<int64_t> count;      // frames that this line stands for, where not 1: a gap of lost ones
  std::optional<double> captured_s;  // wall time since 1970
  std::optional<std::string> capture_source;
  std::optional<double> latency_ms;
  std::map<std::string, double> stages_ms;

  std::string ToLine() const;  // with its newline
};

// One line of --events: what one frame shows. Embeddings are never part of it.
struct WatchEvent {
  struct Object {
    std::vector<double> box;  // x0, y0, x1, y1 in shares of the picture; empty: the whole picture
    std::optional<double> score;
    std::optional<int64_t> track, class_index;
    std::string label;  // of the class; empty: absent
    std::string name;   // of the identity; empty: absent
    std::optional<double> similarity;
  };
  std::string stream;
  int64_t sequence = 0;
  double captured_s = 0;
  std::string capture_source;
  double latency_ms = 0;
  bool in_time = false;
  std::vector<Object> objects;

  Json ToJson() const;
  std::string ToLine() const;  // with its newline
};

// Events as a webhook gets them.
std::string WebhookBody(const std::vector<WatchEvent>& events);

// A watch while it runs, as its page reads it.
struct WatchLive {
  struct Tile {
    WatchResult::Stream stream;
    std::optional<WatchEvent> last;  // of the newest answered frame
  };
  std::string model;
  double deadline_ms = 0, elapsed_s = 0;
  bool finished = false;
  WatchResult::Frames frames;
  std::optional<double> in_time_percent;
  std::optional<WatchResult::Times> latency_ms;
  std::map<std::string, WatchResult::Times> stages_ms;
  std::vector<Tile> tiles;  // one a stream

  Json ToJson() const;
};

}  // namespace weir::results
