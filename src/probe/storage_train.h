// The training phase: emulated accelerators in lockstep, fed by reader threads in one global order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "probe/storage_barrier.h"
#include "probe/storage_order.h"
#include "probe/storage_read.h"
#include "probe/storage_tally.h"
#include "stats/histogram.h"

namespace weir::probe {

struct TrainOptions {
  int accelerators = 1;
  int batch = 1;           // samples of a step and accelerator
  Duration step{};         // compute time of a step; zero asks for samples as fast as they come
  int threads = 4;         // that read
  int depth = 2;           // steps that are read ahead
  bool sequences = false;  // the order is of shards; within one the samples follow one another
  int64_t steps = 100;     // at most
  Duration limit = 60s;    // no step begins after it
  Duration timeout = 10s;  // of one read; after it the read is counted as hung and another thread goes on
  int most_hung = 64;      // the run ends after as many
  HostShare share;         // of a run on several hosts
};

struct TrainResult {
  int64_t steps = 0;    // completed
  int64_t samples = 0;  // of counted steps
  uint64_t bytes = 0;   // of counted steps' samples
  Duration compute{};   // of counted steps
  Duration wall{};      // from the end of the first step to that of the last
  Stalls stalls;
  StallTimes stall_times;
  ReadTally reads;
  stats::Histogram late_ns;  // of wake-ups at the end of a step
  // Cached and asked bytes of each epoch whose cached part is known.
  std::vector<std::pair<uint64_t, uint64_t>> epochs;
  int64_t set_samples = 0;
  std::vector<EpochReads> order;  // samples that arrived, by epoch
  Instant ended{};                // the end of the last step
  bool cancelled = false;

  // Compute time over wall time, as MLPerf Storage defines it: the first step's data are not counted. Nullopt
  // below two steps or without compute time.
  std::optional<double> Utilisation() const;
  std::optional<double> SamplesPerSecond() const;
  std::optional<double> BytesPerSecond() const;
};

using MakeReader = std::function<Result<std::unique_ptr<SampleReader>>()>;

// Trains over `samples` until the steps or the limit are reached, or `stop` asks. Blocks. Threads named
// "reader" also keep the time: the one that waits for the end of a step sleeps until that moment, and takes
// the next samples when it wakes. So a step costs one wake-up. Errors of single samples are counted in the
// result. A read that hangs leaves its thread behind with the data that it may still touch; `clock` must then
// outlive the program's threads. kInvalidArgument where the set has no sample.
Result<TrainResult> Train(std::vector<StorageSample> samples, const TrainOptions& options, Seed seed,
                          const MakeReader& make_reader, const Clock& clock, const std::stop_token& stop);

}  // namespace weir::probe
