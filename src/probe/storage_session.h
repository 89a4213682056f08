// A storage probe from its options to its report.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_decode.h"
#include "probe/storage_profile.h"
#include "probe/storage_result.h"
#include "probe/storage_scaling.h"
#include "probe/storage_set.h"

namespace weir::probe {

// One of several storages whose samples are read together.
struct StorageUnit {
  std::string path;
  size_t samples = 0;
};

struct StorageOptions {
  StorageProfile profile;
  int least_accelerators = 1, most_accelerators = 1;
  ReadOptions read;  // `most_bytes` is set by the session
  int threads = 16, depth = 2, repeats = 3;
  int64_t steps = 200;
  Duration limit = 30s;    // of one run
  Duration timeout = 10s;  // of one read
  uint64_t seed = 1;
  HostShare share;  // of a run on several hosts
  std::optional<DecodeWork> decode;
  // Storage units, in the order of their samples. One or none: nothing is asked about units.
  std::vector<StorageUnit> units;
};

struct TrainReport {
  StorageProfile profile;
  FedAccelerators fed;
  TrainFacts facts;  // of `fed.value` accelerators, or of the fewest asked about if not even these are fed
  std::vector<TrainRun> runs;                    // all, in the order in which they were made
  double demand_samples_per_s = 0;               // of the accelerators of `facts`
  std::optional<double> reads_in_flight_needed;  // for that demand, by the read times measured
  std::vector<UnitRate> units;                   // where there are several
  std::optional<LatencyAnswer> latency;          // where a latency was added
};

// Called after each run with the number of runs so far.
using Progress = std::function<void(int runs, const TrainRun& last)>;

// Threads that read: from memory no more than there are CPUs, as copies never wait.
int ThreadsFor(const ReadOptions& read, int threads);
// Whether a set's samples stand in shards that are read from begin to end.
bool InSequence(const std::vector<StorageSample>& samples);

// Says of a set whether reads of it need the disk. Opens each file.
SetFacts InspectSet(const std::vector<StorageSample>& samples);

// Tells the kernel to forget the pages of all files of the set. A file that cannot be opened is left to the
// reads, which name it.
void ForgetSet(const std::vector<StorageSample>& samples);

// Trains once, watched by the monitor. `repeat` draws another order. kCancelled after a stop; with a barrier,
// what was measured until then.
Result<TrainRun> PlayTraining(const StorageOptions& options, int accelerators, int repeat,
                              const std::vector<StorageSample>& samples, const Clock& clock,
                              const std::stop_token& stop);

// Samples a second from memory, without compute time and without added latency. Nullopt below two steps.
Result<std::optional<double>> MeasureCeiling(const StorageOptions& options,
                                             const std::vector<StorageSample>& samples, const Clock& clock,
                                             const std::stop_token& stop);

// Measures the ceiling from memory, answers the questions about units and latency, then searches the number
// of accelerators that are fed. Blocks. A hung read ends the search with what was measured. kCancelled after
// a stop. `clock` as Train wants it.
Result<TrainReport> ProbeTraining(const StorageOptions& options, const std::vector<StorageSample>& samples,
                                  const SetFacts& set, const Clock& clock, const std::stop_token& stop,
                                  const Progress& progress);

}  // namespace weir::probe
