// The flags of `weir prepare`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/verbs.h"
#include "dataset/set_writer.h"
#include "dataset/source.h"

namespace weir::cli {

struct PrepareFlags {
  std::vector<std::string> sources;
  std::string folder, recipe, list, labels, part, split, preview, verify, recognise, json;
  std::string format = "files", encoding = "jpeg", sampling = "420";
  int64_t make = 0, replicate = 0, sample = 0, min_bytes = 0, max_pixels = 100'000'000, seed = 1;
  int64_t max_file_bytes = dataset::kMaxFileBytes, shard_bytes = dataset::SetWriter::kShardBytes;
  double min_score = 0.5, fetch_timeout_s = 30;
  int workers = 0, quality = 90, fetch_retries = 2;
  bool tolerate_damage = false, strict = false, sha256 = false, no_duplicates = false, shrink = false;
  bool join = false;
  std::vector<std::string> given;  // the flags, by their names
  std::string publish;             // URL that the finished set is written to; `folder` is then a local one
};

// Nothing when all is well; otherwise the exit status, as Flags::Parse.
std::optional<int> ParsePrepareFlags(const Arguments& arguments, PrepareFlags& w);

// kInvalidArgument for flags that contradict each other, and for those that the way of working that was asked
// for (--verify, --join, --make, or reading) would not look at.
Status CheckPrepareFlags(const PrepareFlags& w);

}  // namespace weir::cli
