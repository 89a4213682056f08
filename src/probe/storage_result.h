// Results of a storage probe: the number of accelerators fed, their stalls, and the verdict.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "monitor/resources.h"
#include "probe/storage_scaling.h"
#include "probe/storage_train.h"
#include "results/verdict.h"

namespace weir::probe {

// The largest number of accelerators that are fed.
struct FedAccelerators {
  std::optional<int> value;      // by the majority of the repeats; absent where not even the least is fed
  std::optional<int> low;        // every repeat fed it
  std::optional<int> high;       // at least one repeat fed it
  bool more_may_be_fed = false;  // `value` is the most that was asked about
};

// Returns for each repeat whether N accelerators are fed.
using Trial = std::function<Result<std::vector<bool>>(int accelerators)>;

// Bisects [least, most]: about log2(most - least) trials. Assumes that more accelerators are never fed
// better.
Result<FedAccelerators> FindMostFed(int least, int most, const Trial& trial);

// Conditions on the machine during one run. Values that cannot be read are absent.
struct MachineUse {
  double cores = 1;  // of the machine
  double wall_s = 0;
  std::optional<double> foreign_cores;    // used by other processes and the kernel
  std::optional<double> steal_percent;    // of the machine's CPU time
  std::optional<double> throttled_share;  // of the time, by a CPU quota
  std::optional<double> device_bytes;     // that this process's reads took from block devices
  std::optional<double> mount_bytes;      // that the NFS servers of the set delivered to this host
};
MachineUse MachineUseOf(const monitor::Resources& used, int cores);

// A reason to doubt a result. `reason` is a word of results::Reason, or "cached", "memory", "unwritten",
// "hung", "unequal-units".
struct StorageCause {
  results::Standing at_best = results::Standing::kSuspect;
  std::string reason, evidence;
};
struct StorageVerdict {
  results::Standing standing = results::Standing::kValid;
  std::vector<StorageCause> causes;

  void Add(results::Standing at_best, std::string_view reason, std::string evidence);
};

// Facts about the files of a set.
struct SetFacts {
  uint64_t bytes = 0, samples = 0;
  uint64_t unwritten_bytes = 0;
  uint64_t unknown_files = 0;  // whose file system does not list extents
  std::string in_memory;       // the kind of file system, where the set's files are memory: "tmpfs"
};

// One training run.
struct TrainRun {
  int accelerators = 1;
  TrainResult train;
  MachineUse machine;
};

// The runs behind a claim, all of the same number of accelerators.
struct TrainFacts {
  std::vector<TrainRun> runs;
  std::optional<double> ceiling_samples_per_s;  // the same from memory, without steps or added latency
  SetFacts set;
  bool from_memory = false;
  bool decoded = false;    // the samples were decoded, in the run and for the ceiling
  bool wants_cold = true;  // reads go through the page cache and should not hit it
  // Rate with twice the threads over that with the threads of the runs, without compute time. Absent where no
  // step waited for a thread.
  std::optional<double> more_threads_gain;
  std::vector<UnitRate> units;  // where the set lies on several storages

  std::optional<double> MedianUtilisation() const;
  std::optional<double> MedianSamplesPerSecond() const;
  std::optional<double> MedianBytesPerSecond() const;
  ReadTally Reads() const;  // of all runs
  Stalls AllStalls() const;
};

// Checks that every phase shares: errors, hung reads, page cache, unwritten extents, the machine.
void JudgeReads(const ReadTally& reads, const SetFacts& set, bool wants_cold, StorageVerdict& verdict);
void JudgeMachine(const MachineUse& machine, StorageVerdict& verdict);
// Doubts cold reads of more bytes than the mount delivered, where it is known.
void JudgeDelivery(uint64_t read_bytes, const MachineUse& machine, bool wants_cold, StorageVerdict& verdict);
StorageVerdict Judge(const TrainFacts& facts);

// Epochs of which every sample arrived, and those of them in which none arrived twice or not at all.
struct EpochCounts {
  int64_t whole = 0, exact = 0;
};
EpochCounts CountEpochs(const std::vector<TrainRun>& runs);

// The least gain by twice the threads at which too few of them held the steps up.
inline constexpr double kGainOfThreads = 1.1;

struct StorageBottleneck {
  // "open", "read", "close", "queue"; "storage" if steps waited for a thread, and more threads would not read
  // faster; "compute" if stalls are below 1 % of the time.
  std::string stage;
  double share = 0;  // of the wall time
};
StorageBottleneck FindBottleneck(const TrainFacts& facts);

// In microseconds, the accelerators at which added latency stops mattering need this many reads in flight:
// rate x time of one read (Little's law). Nullopt without reads.
std::optional<double> ReadsInFlight(double samples_per_s, const ReadTally& reads);

}  // namespace weir::probe
