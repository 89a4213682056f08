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
#include "probe/storage_read.h"
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
};

// The time that accelerators waited, by the work on the last sample of the step meanwhile.
struct Stalls {
  Duration queue{};  // before its read began: all readers were busy, or the depth was used up
  Duration open{}, read{}, close{};
  Duration Total() const { return queue + open + read + close; }
  void Add(const Stalls& other);
};

// Times of the stages of steps that waited, in nanoseconds: one value for each stage of each such step.
struct StallTimes {
  stats::Histogram queue, open, read, close;
  void Add(const Stalls& stalls);
  void Merge(const StallTimes& other);
};

// Times and counts of single reads.
struct ReadTally {
  stats::Histogram open_ns, read_ns, close_ns;
  uint64_t bytes = 0;                          // read
  uint64_t cached_bytes = 0, asked_bytes = 0;  // of reads whose cached part is known
  int64_t unknown_cache = 0;                   // reads whose cached part is not known
  int64_t errors = 0;                          // hung reads included
  std::vector<std::string> first_errors;       // at most ten
  std::vector<std::string> hung;               // samples whose read did not end within the timeout

  void Add(const ReadMoments& moments);
  void AddError(std::string message);
  void Merge(const ReadTally& other);
  std::optional<double> CachedShare() const;  // nullopt if no read's cached part is known
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
  bool cancelled = false;

  // Compute time over wall time, as MLPerf Storage defines it: the first step's data are not counted. Nullopt
  // below two steps or without compute time.
  std::optional<double> Utilisation() const;
  std::optional<double> SamplesPerSecond() const;
  std::optional<double> BytesPerSecond() const;
};

// Position in the global order -> index of the sample: a permutation of all samples each epoch, a pure
// function of seed, epoch and position. Keeps one epoch. One thread at a time.
class GlobalOrder {
 public:
  GlobalOrder(int64_t samples, Seed seed) : samples_(samples), seed_(seed) {}
  // A permutation of groups of neighbours, such as the samples of a shard. `begins` holds the first sample of
  // each group, and the number of samples at its end.
  GlobalOrder(std::vector<int64_t> begins, Seed seed)
      : samples_(begins.back()), seed_(seed), begins_(std::move(begins)) {}
  int64_t At(int64_t position);

 private:
  const int64_t samples_;
  const Seed seed_;
  const std::vector<int64_t> begins_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

// Accelerator time without threads. A step begins when the last one has ended and its data are there, so a
// late wake-up of the thread that watches costs the accelerators nothing. Pure.
class StepTimes {
 public:
  explicit StepTimes(Duration step) : step_(step) {}
  // Takes the moment at which a step's data were whole; returns the moment at which the step ends.
  Instant Next(Instant ready);
  Duration LastStall() const { return stall_; }
  Instant LastDeadline() const { return deadline_; }  // at which the data were wanted

 private:
  const Duration step_;
  Duration stall_{};
  Instant deadline_{};
  std::optional<Instant> end_;
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
