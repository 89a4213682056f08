// An agent's part of a storage probe on several hosts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/agent.h"
#include "cluster/message.h"
#include "probe/storage_barrier.h"
#include "probe/storage_session.h"
#include "stats/histogram.h"

namespace weir::probe {

inline constexpr char kStorageSpace[] = "storage.space", kStorageMake[] = "storage.make",
                      kStorageOpen[] = "storage.open", kStoragePlay[] = "storage.play",
                      kStorageDrop[] = "storage.drop";

// The probe, as all hosts know it. The order is a function of the seed and the position.
struct HostsPlan {
  StorageOptions options;
  std::string path;           // the same storage on every host; rank 0 writes the set below it
  std::string set;            // files to be read instead
  uint64_t record_bytes = 0;  // of a record; 0: whole files
  MadeSetOptions made;

  bool from_memory() const { return options.read.access == Access::kMemory && !options.decode; }
  bool writes() const { return set.empty() && !from_memory(); }
};

inline constexpr char kSetFolder[] = "set_folder";  // of a written set, in an answer and a request

// The place of a set that is to be written, as one host sees it.
struct SpaceThere {
  uint64_t bytes = 0, free_bytes = 0;  // that rank 0 would write, and that are free there; else 0
  std::vector<std::string> foreign;    // folders of probes on other hosts, or before a restart

  Json ToJson() const;
  static Result<SpaceThere> FromJson(const Json& json);  // kCorrupt names the key
};

// The set as one host sees it.
struct SetThere {
  std::string hash;  // of names and sizes
  SetFacts facts;
  std::optional<double> ceiling_samples_per_s;

  Json ToJson() const;
  static Result<SetThere> FromJson(const Json& json);  // kCorrupt names the key
};

// The barrier of a run, by the connection to rank 0. `context` must outlive it.
class ClusterBarrier final : public StepBarrier {
 public:
  explicit ClusterBarrier(cluster::CallContext& context) : context_(context) {}
  void Start(Passed passed) override;
  void Arrive(int64_t step, bool last) override;
  void Finish() override;

  // Lets the other hosts end at their next step if this one ended before the run did. REQUIRES: nobody calls
  // Arrive any more.
  void Leave();
  // REQUIRES: Finish was called.
  const stats::Histogram& cost_ns() const { return cost_ns_; }

 private:
  cluster::CallContext& context_;
  stats::Histogram cost_ns_;  // of the thread that passes steps
  int64_t next_ = 0;          // step to arrive at
  bool over_ = false;         // the last step was passed; of the thread that passes steps
};

// One thread at a time. The set that it wrote is removed with it.
class StorageAgent {
 public:
  explicit StorageAgent(const Clock& clock) : clock_(clock) {}

  // Removes what killed agents of this host left below the path. The answer is a SpaceThere.
  static Result<cluster::Message> Space(const HostsPlan& plan, const cluster::CallContext& context);
  // Rank 0 writes the set; its answer names the folder.
  Result<cluster::Message> Make(const HostsPlan& plan, const cluster::CallContext& context);
  // Finds the samples, and measures the ceiling from memory. The request has the folder of a written set. The
  // answer has the facts of the set, the ceiling, and a hash that differs for another set.
  Result<cluster::Message> Open(HostsPlan plan, const cluster::Message& request,
                                const cluster::CallContext& context);
  // Plays one HostTask; the answer is a HostTrain. kInvalidArgument before an Open that succeeded, and for a
  // task that is none of its plan.
  Result<cluster::Message> Play(const cluster::Message& request, cluster::CallContext& context);
  // Removes the set that was written.
  cluster::Message Drop();

 private:
  const Clock& clock_;
  HostsPlan plan_;
  std::optional<MadeSet> made_;
  std::vector<StorageSample> samples_;
  bool opened_ = false;
};

// One run, as rank 0 orders it.
struct HostTask {
  int accelerators = 1;  // of each host
  int repeat = 0;
  int hosts = 0;         // as many first ranks play; the others answer at once
  bool as_fast = false;  // without steps and without a barrier
  Instant begin{};       // on the clock of the host that gets it

  Json ToJson() const;
  static Result<HostTask> FromJson(const Json& json);  // kCorrupt names the key
};

}  // namespace weir::probe
