// The results of `weir probe storage --json` and `weir probe host --json`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

// Quantiles of a time in microseconds; absent without values.
struct Percentiles {
  std::optional<double> p50, p90, p99, p99_9, max;
  int64_t count = 0;
  bool operator==(const Percentiles&) const = default;
};

// The machine during a probe. Values that could not be read are absent.
struct ProbeMachine {
  std::optional<double> bytes_from_device, bytes_from_mount, foreign_cores, steal_percent;
  bool operator==(const ProbeMachine&) const = default;
};

struct ProbeVerdict {
  struct Cause {
    std::string reason, evidence;
    bool operator==(const Cause&) const = default;
  };
  std::string verdict;  // "VALID", "SUSPECT", "INVALID"
  std::vector<Cause> reasons;
  bool operator==(const ProbeVerdict&) const = default;
};

struct StorageProbeResult {
  // The reads of all runs.
  struct Reads {
    std::optional<double> cached_share;  // from 0 to 1, of the bytes before they were read
    Percentiles open_us, read_us, close_us;
    std::optional<Percentiles> decode_us, augment_us;  // where samples were decoded
    int64_t errors = 0;
    std::vector<std::string> first_errors, hung;
    bool operator==(const Reads&) const = default;
  };
  struct Set {
    uint64_t samples = 0, bytes = 0, unwritten_bytes = 0, files_without_extents = 0;
    bool operator==(const Set&) const = default;
  };
  struct Bottleneck {
    std::string stage;
    std::optional<double> share;  // from 0 to 1, of the wall time
    bool operator==(const Bottleneck&) const = default;
  };
  // The accelerators that are fed.
  struct Fed {
    std::optional<int> value, low, high;
    bool more_may_be_fed = false;
    bool operator==(const Fed&) const = default;
  };
  struct StallSeconds {
    double queue = 0, open = 0, read = 0, close = 0, decode = 0, augment = 0, hosts = 0;
    bool operator==(const StallSeconds&) const = default;
  };
  struct StallTimes {
    Percentiles queue, open, read, close, decode, augment, hosts;
    bool operator==(const StallTimes&) const = default;
  };
  // A mean over rounds with its 95 % interval; no interval for one round.
  struct Estimate {
    double value = 0;
    std::optional<double> low, high;
    bool operator==(const Estimate&) const = default;
  };
  // A storage unit with those before it.
  struct Unit {
    std::string path;
    Estimate samples_per_s;         // of the units up to this one together
    std::optional<Estimate> share;  // gain by this unit over the mean of those before it; 1: in proportion
    std::optional<Estimate> alone_samples_per_s;  // of this unit by itself
    bool operator==(const Unit&) const = default;
  };
  struct LatencyLevel {
    int reads_in_flight = 1;
    Estimate samples_per_s, delayed_samples_per_s, kept;
    bool operator==(const LatencyLevel&) const = default;
  };
  // One of several hosts that read together. Medians are of the runs that `accelerators` reports.
  struct Host {
    std::string name;
    int rank = 0;
    std::optional<double> clock_offset_us, clock_error_us;  // of its clock against that of the caller
    std::optional<std::string> lost;                        // why it is; absent: it was there to the end
    std::optional<double> utilisation_percent, samples_per_s;
    std::optional<double> ended_s;  // median end of its last step after the common begin
    Percentiles barrier_us;         // the messages of a step, without the wait for the last
    std::optional<Estimate> samples_per_s_with_those_before;  // as fast as they read
    std::optional<Estimate> share;  // gain by this host over the mean of those before it
    bool operator==(const Host&) const = default;
  };
  // Epochs of which every sample was read, and those of them in which each was read once.
  struct Epochs {
    int64_t whole = 0, each_once = 0;
    bool operator==(const Epochs&) const = default;
  };
  // The answer whether an added latency matters.
  struct Latency {
    double added_us = 0, demand_samples_per_s = 0;
    std::optional<int> reads_in_flight_enough;  // from which on it does not matter
    std::vector<LatencyLevel> levels;
    bool operator==(const Latency&) const = default;
  };
  struct TrainRun {
    int accelerators = 1;
    std::optional<double> utilisation_percent, samples_per_s;
    int64_t steps = 0;
    double wall_s = 0;
    int64_t errors = 0;
    std::vector<double> cached_share_by_epoch;  // of the epochs in which some read asked
    uint64_t bytes_asked = 0;
    ProbeMachine machine;  // in JSON its keys stand beside the others, as below
    bool operator==(const TrainRun&) const = default;
  };
  struct Train {
    std::string profile;
    Fed accelerators;
    double least_utilisation_percent = 0, demand_samples_per_s = 0;
    std::optional<double> reads_in_flight_needed;
    std::optional<double> more_threads_gain;  // rate with twice the threads over that with the threads
    std::optional<double> utilisation_percent, samples_per_s, bytes_per_s, ceiling_samples_per_s;
    Percentiles timer_late_us;
    StallSeconds stall_s;
    StallTimes stall_us;
    Bottleneck bottleneck;
    double sample_bytes = 0;  // mean of the set
    std::optional<double> step_ms;
    int batch = 1;
    bool decoded = false;
    std::vector<Unit> units;  // where there are several
    std::optional<Latency> latency;
    Epochs epochs;                          // of the runs that are reported
    std::vector<Host> hosts;                // where there are several
    std::optional<Percentiles> barrier_us;  // of all hosts
    std::vector<TrainRun> runs;
    bool operator==(const Train&) const = default;
  };
  struct EtlRun {
    int64_t images = 0, rejected = 0;
    uint64_t bytes_in = 0, bytes_out = 0;
    double wall_s = 0;
    std::optional<double> images_per_s;
    ProbeMachine machine;
    bool operator==(const EtlRun&) const = default;
  };
  struct EtlSeconds {
    double read = 0, decode = 0, resize = 0, encode = 0, write = 0;
    bool operator==(const EtlSeconds&) const = default;
  };
  struct Etl {
    int workers = 1;
    std::optional<double> images_per_s, bytes_in_per_s, bytes_out_per_s;  // medians of the runs
    EtlSeconds stages_s;                                                  // of all runs and threads
    Bottleneck bottleneck;                                                // share of the threads' time
    std::vector<EtlRun> runs;
    bool operator==(const Etl&) const = default;
  };
  struct Frames {
    int64_t planned = 0, answered = 0, in_time = 0;
    std::optional<double> in_time_percent;
    Percentiles response_us, service_us;
    bool operator==(const Frames&) const = default;
  };
  struct InferRun {
    Frames frames;
    ProbeMachine machine;
    bool operator==(const InferRun&) const = default;
  };
  struct Infer {
    int streams = 0;
    double frames_per_s = 0;
    Frames frames;  // of all runs
    Bottleneck bottleneck;
    std::vector<InferRun> runs;
    bool operator==(const Infer&) const = default;
  };
  struct StreamRun {
    std::optional<double> bytes_per_s;
    uint64_t bytes_asked = 0;
    ProbeMachine machine;
    bool operator==(const StreamRun&) const = default;
  };
  struct Stream {
    uint64_t block_bytes = 0;
    int threads = 0;
    std::optional<double> bytes_per_s;  // median of the runs
    std::vector<StreamRun> runs;
    bool operator==(const Stream&) const = default;
  };
  struct TrainFigures {
    std::optional<double> utilisation_percent, samples_per_s;
    bool operator==(const TrainFigures&) const = default;
  };
  struct StreamFigures {
    std::optional<double> bytes_per_s;
    bool operator==(const StreamFigures&) const = default;
  };
  struct Phases {
    TrainFigures train;
    Frames infer;
    StreamFigures stream;
    bool operator==(const Phases&) const = default;
  };
  // Together over alone.
  struct Interference {
    std::optional<double> train_samples_per_s, stream_bytes_per_s, infer_p99_response;
    bool operator==(const Interference&) const = default;
  };
  struct Mix {
    Phases alone, together;
    Interference together_over_alone;
    bool operator==(const Mix&) const = default;
  };

  std::string phase;  // "etl", "train", "infer", "stream", "mix"; the one of these is there. Or "all"
  std::optional<Etl> etl;
  std::optional<Train> train;
  std::optional<Infer> infer;
  std::optional<Stream> stream;
  std::optional<Mix> mix;
  std::vector<StorageProbeResult> phases;  // of "all": etl, train and infer, one after the other
  Reads reads;
  Set set;
  ProbeVerdict verdict;
  Json provenance = Json::object();

  Json ToJson() const;
  static Result<StorageProbeResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const StorageProbeResult&) const = default;
};

struct HostProbeResult {
  struct Rate {
    double one_thread = 0, all_threads = 0;
    bool operator==(const Rate&) const = default;
  };
  struct MultiplyAdds {
    Rate f32;
    std::optional<Rate> bf16, int8;
    bool operator==(const MultiplyAdds&) const = default;
  };
  struct Memory {
    Rate read, copy;
    bool operator==(const Memory&) const = default;
  };
  struct Times {
    double p50 = 0, p99 = 0;
    bool operator==(const Times&) const = default;
  };

  int cores = 0;
  std::string instruction_set;
  MultiplyAdds multiply_adds_per_s;
  Memory memory_gb_per_s;
  double clock_read_ns = 0, system_call_ns = 0;
  Times timer_late_us, wake_up_us, loopback_us;
  ProbeMachine machine;
  ProbeVerdict verdict;
  Json provenance = Json::object();

  Json ToJson() const;
  static Result<HostProbeResult> FromJson(const Json& json);  // kCorrupt names the key
  bool operator==(const HostProbeResult&) const = default;
};

}  // namespace weir::results
