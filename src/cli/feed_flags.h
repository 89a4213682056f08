// The flags of `weir feed`, on this host and on others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/cluster_flags.h"
#include "cluster/join.h"
#include "feed/bench_session.h"

namespace weir::cli {

struct FeedFlags {
  std::string accelerators, profile, predictor, network;
  std::string set, step, json, state, index, masks, cache_folder;
  feed::Sampling sampler = feed::Sampling::kGlobal;
  feed::Ends ends = feed::Ends::kDrop;
  feed::CropRule crop = feed::CropRule::kRandomResized;
  feed::ValueType type = feed::ValueType::kUint8;
  feed::BadPolicy bad = feed::BadPolicy::kReplace;
  dataset::Layout layout = dataset::Layout::kNhwc;
  dataset::Orientation orientation = dataset::Orientation::kExif;
  bool bench = false, hash = false, strict = false, no_verify = false, cache_decoded = false,
       tolerate_damage = false;
  int batch = 64, threads = 0, prefetch = 4, width = 224, height = 224, short_side = 256, rank = 0, world = 1,
      reads = -1, mask_fill = 0;
  int64_t seed = 0, epochs = 0, block = 1024, window = 8, cache_bytes = 0;
  double duration_s = 0, flip = 0.5, vertical_flip = 0, rotation = 0, grayscale = 0;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  double area_low = 0.08;
  cluster::JoinOptions join;       // the hosts that take ranks; none: this one
  std::vector<std::string> given;  // by their long names: Flags::Given
};

// Returns the exit status if there is nothing more to do.
std::optional<int> ParseFeedFlags(const std::vector<std::string>& arguments, FeedFlags& flags);

// Returns the files, folders and stores that the flags have a host open.
std::vector<NamedPath> PathsOf(const FeedFlags& flags);

// Returns the measurement that the flags ask for. kInvalidArgument names flags that contradict one another.
Result<feed::BenchSetup> SetupOf(const FeedFlags& flags);

}  // namespace weir::cli
