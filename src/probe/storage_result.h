// Answers of a storage probe: how many accelerators, what they waited for, and whether to believe it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "probe/storage_train.h"

namespace weir::probe {

// The largest number of accelerators that are fed.
struct FedAccelerators {
  std::optional<int> value;  // by the median of the repeats; nothing where not even the least number is fed
  std::optional<int> low;    // every repeat fed it
  std::optional<int> high;   // at least one repeat fed it
};

// Whether N accelerators are fed, by repeats: true for each that was.
using Trial = std::function<Result<std::vector<bool>>(int accelerators)>;

// Bisects [least, most]: about log2(most - least) trials. Takes it that more accelerators are never fed
// better.
Result<FedAccelerators> FindMostFed(int least, int most, const Trial& trial);

struct Facts {
  TrainResult train;
  std::optional<double> ceiling_samples_per_s;  // the same from memory, without steps
  uint64_t unwritten_bytes = 0, set_bytes = 0;
  bool wants_cold = true;
};

struct StorageReason {
  std::string reason;    // "cached", "unwritten", "errors", "hung", "too-few-steps", "harness"
  std::string evidence;  // the figure and its limit
};
struct StorageVerdict {
  std::string verdict = "VALID";  // or "SUSPECT", "INVALID"
  std::vector<StorageReason> reasons;
};
StorageVerdict Judge(const Facts& facts);

// "open", "read", "close", "queue" by the largest share of the stalls; "compute" where they are below 1 % of
// the time.
std::string Bottleneck(const TrainResult& train);

Json ToJson(const Facts& facts);

}  // namespace weir::probe
