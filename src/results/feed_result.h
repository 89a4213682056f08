// The result of a training feed without a trainer, as `weir feed --bench --json` prints it.
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

struct FeedResult {
  // Milliseconds, summed over threads. `wait`: the trainer waited for the feed. `idle`: threads waited for
  // the trainer.
  struct Stages {
    double read = 0, decode = 0, augment = 0, wait = 0, idle = 0;
    bool operator==(const Stages&) const = default;
  };
  // The emulated trainer.
  struct Trainer {
    double step_ms = 0, utilisation_percent = 0;
    bool operator==(const Trainer&) const = default;
  };
  // How far the first epoch's order mixes the set (feed::Mixing).
  struct Mixing {
    std::optional<double> serial_correlation, class_share;
    bool operator==(const Mixing&) const = default;
  };
  struct Bad {
    std::string name;  // through EscapeBytes
    std::string reason, detail;
    bool operator==(const Bad&) const = default;
  };
  // The part of one host, where several took the ranks of one feed.
  struct Host {
    std::string name;  // through EscapeBytes
    int64_t rank = 0;
    std::optional<double> clock_offset_us, clock_error_us;  // of its clock against that of rank 0
    std::optional<std::string> lost;                        // why it is; absent: it was there to the end
    std::string verdict;
    int64_t samples = 0;
    double wall_s = 0;
    std::optional<double> samples_per_s, cpu_us_per_sample;
    double first_batch_ms = 0, meet_ms = 0;
    int64_t bytes_read = 0;
    Stages stages_ms;
    Resources resources;
    bool operator==(const Host&) const = default;
  };
  struct Reason {
    std::string reason, evidence;
    bool operator==(const Reason&) const = default;
  };

  std::string set;   // through EscapeBytes
  std::string hash;  // of the set, 32 hex digits
  int64_t images = 0, classes = 0;
  int64_t batch = 1, rank = 0, world = 1, threads = 1, prefetch = 1, seed = 0;
  std::string sampler, ends, crop, type, bad_policy;
  int64_t samples = 0, batches = 0;
  double wall_s = 0;
  std::optional<double> samples_per_s, cpu_us_per_sample;
  double first_batch_ms = 0;
  int64_t bytes_read = 0;
  Stages stages_ms;
  std::optional<double> meet_ms;  // that ranks waited for one another
  std::optional<Trainer> trainer;
  std::optional<Bottleneck> bottleneck;
  std::string verdict;  // VALID, SUSPECT or INVALID
  std::vector<Reason> reasons;
  std::map<std::string, int64_t> rejected;  // samples that could not be used, by reason
  std::vector<Bad> rejected_examples;
  Mixing mixing;
  std::vector<std::string> epoch_hashes;  // of all rows and labels, with --hash
  Json state;                             // where the feed stands: feed::FormatState
  bool interrupted = false;
  std::vector<Host> hosts;  // empty: one process
  Resources resources;      // of one process; those of several stand in `hosts`
  Json provenance;          // record::Provenance::ToJson
  std::string command;

  Json ToJson() const;
  static Result<FeedResult> FromJson(
      const Json& json);  // kCorrupt names the key; kUnsupported for another schema_version
  bool operator==(const FeedResult&) const = default;
};

}  // namespace weir::results
