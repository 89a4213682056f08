// A storage probe on this host, from its request to its result. Nothing is printed.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probe/named_accelerators.h"
#include "probe/storage_etl.h"
#include "probe/storage_request.h"
#include "probe/storage_set.h"
#include "results/probe_result.h"

namespace weir::probe {

// The surroundings of a run. All are called on its thread, except `prepare`.
struct StorageHooks {
  std::function<void(const std::string& line)> note;
  std::function<void(double elapsed_s, int64_t runs, const std::string& extra)> progress;
  std::function<void()> progress_ended;
  PrepareOriginals prepare;  // of the phase etl
  DrawPictures draw;
  // Predicts the step of the card of --accelerators for a batch; adds notes on how.
  std::function<Result<Duration>(const AskedCard& card, int batch, std::vector<std::string>& notes)>
      predict_step;
};

struct StorageAnswer {
  results::StorageProbeResult result;
  bool hung = false;  // a read or a write does not end
  bool fed = true;    // at least one number of accelerators
};

// The sets that are read, and a folder for what the phase etl writes. Removed with their holder.
class ProbedSets {
 public:
  // Notes the folders that other probes have left, and the bytes to be written. Then lists the user's own
  // files, or writes a set below each path. Errors as those of CheckSpaces, MadeSet::Make and ListSamples.
  static Result<ProbedSets> Prepare(const StorageRequest& request, const StorageProfile& profile,
                                    const StorageHooks& hooks, const Clock& clock,
                                    const std::stop_token& stop);
  ProbedSets(ProbedSets&&) = default;
  ProbedSets& operator=(ProbedSets&&) = delete;
  ~ProbedSets() { Remove(); }

  void Remove();
  const std::vector<StorageSample>& samples() const { return samples_; }
  const std::vector<StorageUnit>& units() const { return units_; }
  const std::string& work() const { return work_; }  // the folder of the phase etl

 private:
  ProbedSets() = default;
  Status ListOwn(const StorageRequest& request, const StorageHooks& hooks);
  Status Write(const StorageRequest& request, const StorageProfile& profile, const StorageHooks& hooks,
               const Clock& clock, const std::stop_token& stop);

  std::vector<MadeSet> made_;
  std::optional<OwnedFolder> folder_;
  std::vector<StorageSample> samples_;
  std::vector<StorageUnit> units_;
  std::string work_;
};

// Returns the demand; measures the step of the model of --profile-from for it, or predicts that of a card.
Result<StorageProfile> FindDemand(const StorageRequest& request, const StorageHooks& hooks,
                                  const Clock& clock);

// Puts the sets into `sets` and plays the phases. The result lacks its provenance. After a hung read the sets
// must not be destroyed: call EndDespiteHungReads. `clock` as Train wants it.
Result<StorageAnswer> RunStorageProbe(const StorageRequest& request, const StorageProfile& profile,
                                      const StorageHooks& hooks, const Clock& clock,
                                      const std::stop_token& stop, std::optional<ProbedSets>& sets);

// Ends the program although a thread is in a read that does not end. The set may be on the storage that
// hangs, so its removal gets a second; the next run removes what is left.
[[noreturn]] void EndDespiteHungReads(ProbedSets& sets, int status);

}  // namespace weir::probe
