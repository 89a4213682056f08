// The flags of `weir probe storage`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/verbs.h"
#include "cluster/join.h"
#include "probe/model_step.h"
#include "probe/storage_phases.h"
#include "probe/storage_set.h"

namespace weir::cli {

struct StorageFlags {
  std::vector<std::string> paths;
  std::string phase = "train";
  int streams = 8;
  double frame_rate = 25, deadline_ms = 0;
  int64_t record_bytes = 0, block_bytes = int64_t{1} << 20;
  std::string profile, profile_from, engine, set, accelerators = "1", access = "pool", source = "storage",
                                                  json, html, added = "0us", predictor, network;
  std::string format = "files", distribution = "log-normal", prepare_format = "tar";
  probe::MadeSetOptions made;
  int ring_depth = 16, shard_mb = 256, decode_size = 224;
  bool verify = false, decode = false;
  int batch = 0, threads = 16, depth = 2, repeats = 3, seed = 1;
  int64_t steps = 200;
  double step_ms = -1, limit_s = 30, timeout_s = 10, least_utilisation = 0, max_rate_mb = 0;
  bool direct = false, warm = false, must_feed = false;
  cluster::JoinOptions join;  // the hosts that read together; none: this one

  // Whether the samples must be pictures.
  bool NeedsPictures() const { return decode || phase == "etl" || phase == "all"; }
};

// Returns the exit status where the program should end.
std::optional<int> ParseStorageFlags(const Arguments& arguments, StorageFlags& flags);

// kInvalidArgument for flags that do not go together.
Status CheckStorageFlags(const StorageFlags& flags);

// The demand by the profile, the measured model and the flags, each over the one before.
Result<probe::StorageProfile> DemandOf(const StorageFlags& flags,
                                       const std::optional<probe::ModelStep>& model);

Result<probe::PhaseOptions> PhaseOptionsOf(const StorageFlags& flags, const probe::StorageProfile& profile);

// The set to be written, with pictures where it needs them. Its sizes are those of the profile unless flags
// give them.
Result<probe::MadeSetOptions> MadeSetOf(const StorageFlags& flags, const probe::StorageProfile& profile);

}  // namespace weir::cli
