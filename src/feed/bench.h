// A feed without a trainer: its rate, its costs and its bottleneck.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "feed/feed.h"
#include "results/bottleneck.h"
#include "results/verdict.h"

namespace weir::feed {

// Returns the time of "3.5ms", "800us" or "1s"; kInvalidArgument for other texts, and outside of 0 to an
// hour.
Result<Duration> ParseStep(std::string_view text);

struct BenchOptions {
  Duration step{};         // of the emulated trainer, for each batch
  Duration duration = 5s;  // that is measured; 0: by epochs
  int64_t epochs = 0;      // whole epochs, if `duration` is 0
  int64_t warm_up = 0;     // batches before the measurement
  bool hash = false;       // of all rows and labels of each epoch
  // Blocks until every rank has taken its batch, or has ended its epoch, `step` from 0 on; gives whether some
  // rank wants no step after it, which `last` says of this one. Empty: there is one rank. kCancelled after a
  // stop.
  std::function<Result<bool>(int64_t step, bool last)> meet;
};

struct BenchFigures {
  double wall_s = 0, first_batch_s = 0;
  double cpu_s = 0;                 // of the process
  double step_s = 0;                // the emulated trainer's time
  double meet_s = 0;                // waiting for other ranks
  FeedCounters counters;            // of the measured part
  std::vector<double> rates;        // samples/s of equal parts of the time
  std::vector<std::string> hashes;  // by epoch, 32 hex digits
  bool interrupted = false;
};

// Takes batches as a trainer would: the step of the trainer is a wait that begins when its batch is there.
// `progress` is called about ten times a second with the rows so far.
Result<BenchFigures> RunBench(Feed& feed, const BenchOptions& options, const Clock& clock,
                              const std::stop_token& stop,
                              const std::function<void(double elapsed_s, int64_t rows)>& progress);

// Finds what holds the feed back: "trainer", or the longest stage of the threads: "read", "decode" or
// "augment". Pure.
std::optional<results::Bottleneck> FindFeedBottleneck(const BenchFigures& figures, int threads);

// Facts of the machine during the measurement. Absent: not known, and not judged.
struct BenchEnvironment {
  int cpus = 1;
  std::optional<double> steal_percent, foreign_cpu, throttled_s;
};
// Judges whether the rate may be believed, by the limits of results/thresholds.h. Pure.
results::Verdict JudgeBench(const BenchFigures& figures, const BenchEnvironment& around);

}  // namespace weir::feed
