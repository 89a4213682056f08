// A storage probe as the user asks for it. Messages name the options by the flags of `weir probe storage`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/seed.h"
#include "cluster/join.h"
#include "dataset/set.h"
#include "probe/model_step.h"
#include "probe/storage_agent.h"
#include "probe/storage_phases.h"
#include "probe/storage_read.h"
#include "probe/storage_set.h"

namespace weir::probe {

enum class StoragePhase : uint8_t { kTrain, kEtl, kInfer, kStream, kMix, kAll };
inline constexpr Choices<StoragePhase, 6> kStoragePhases{{{StoragePhase::kTrain, "train"},
                                                          {StoragePhase::kEtl, "etl"},
                                                          {StoragePhase::kInfer, "infer"},
                                                          {StoragePhase::kStream, "stream"},
                                                          {StoragePhase::kMix, "mix"},
                                                          {StoragePhase::kAll, "all"}}};
constexpr std::string_view ToString(StoragePhase phase) { return WordOf(kStoragePhases, phase); }

struct StorageRequest {
  std::vector<std::string> paths;
  StoragePhase phase = StoragePhase::kTrain;
  int streams = 8;
  double frame_rate = 25, deadline_ms = 0;
  int64_t record_bytes = 0, block_bytes = int64_t{1} << 20;
  std::string profile, profile_from, engine, set, accelerators = "1", json, html, added = "0us", predictor,
                                                  network;
  dataset::SetFormat prepare_format = dataset::SetFormat::kTar;  // what etl writes
  Access access = Access::kPool;
  bool from_memory = false;              // no storage is read
  MadeSetOptions made{.mean_bytes = 0};  // 0: sizes of the profile
  int ring_depth = 16, decode_size = 224;
  bool verify = false, decode = false;
  int batch = 0, threads = 16, depth = 2, repeats = 3, seed = 1;
  int64_t steps = 200;
  double step_ms = -1, limit_s = 30, timeout_s = 10, least_utilisation = 0, max_rate_mb = 0;
  bool direct = false, warm = false, must_feed = false;
  cluster::JoinOptions join;  // the hosts that read together; none: this one

  bool prepares() const { return phase == StoragePhase::kEtl || phase == StoragePhase::kAll; }
  bool NeedsPictures() const { return decode || prepares(); }  // as samples
};

// Draws that many encoded JPEG pictures.
using DrawPictures = std::function<Result<std::vector<std::string>>(Seed seed, int count)>;

// Returns kInvalidArgument for options that do not go together.
Status CheckStorageRequest(const StorageRequest& request);
// Returns kInvalidArgument for options that only one host has.
Status CheckHostsRequest(const StorageRequest& request);

// Returns the demand by the profile, the measured model and the options, each over the one before.
Result<StorageProfile> DemandOf(const StorageRequest& request, const std::optional<ModelStep>& model);

Result<PhaseOptions> PhaseOptionsOf(const StorageRequest& request, const StorageProfile& profile);

// Returns the set to be written, with pictures where it needs them. Its sizes are those of the profile unless
// the request has them.
Result<MadeSetOptions> MadeSetOf(const StorageRequest& request, const StorageProfile& profile,
                                 const DrawPictures& draw);

// Returns the plan of a probe on several hosts.
Result<HostsPlan> HostsPlanOf(const StorageRequest& request, const StorageProfile& profile,
                              const DrawPictures& draw);

}  // namespace weir::probe
