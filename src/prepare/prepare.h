// Pictures to a prepared data set: read, checked, resized once, written in the order they came, with what was
// rejected and why. Killed at any moment and called again, it goes on, and ends with the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "dataset/set.h"
#include "dataset/set_writer.h"
#include "prepare/feed.h"
#include "prepare/maker.h"
#include "prepare/split.h"

namespace weir::prepare {

// One of several sets that are made of the same decode.
struct Variation {
  std::string name;  // of its folder
  dataset::Geometry geometry;
};

struct Options {
  std::string folder;  // of the set: absent, empty, or what an earlier call with the same options has left
  dataset::SetFormat format = dataset::SetFormat::kFiles;
  std::optional<dataset::Geometry>
      geometry;                       // absent: files go in byte for byte, once their decoder finds no fault
  std::vector<Variation> variations;  // instead of `geometry`: one set in each folder/NAME
  // Empty: one set. Else one set in NAME for each share, in the set's or the variation's folder. Pictures of
  // the same bytes go into the share of the first of them.
  std::vector<SplitShare> split;
  uint64_t split_seed = 1;
  Encoding encoding = Encoding::kJpeg;  // of pictures with a geometry that are not raw
  image::JpegOptions jpeg;
  image::DecodeOptions decode;
  bool shrink = false;  // JPEGs far too large are shrunk while they are decoded: dataset::PreparerOptions
  bool sha256 = false;  // also SHA-256 in the manifest
  int64_t shard_bytes = dataset::SetWriter::kShardBytes;
  int64_t min_bytes = 0;           // smaller files are rejected
  bool reject_duplicates = false;  // by their bytes: the first stays
  int64_t replicate = 0;  // once all are in, real copies are added in turn until there are so many; 0: none
  std::optional<dataset::Part> part;  // make only this part, to be joined
  // Rejects what it does not like; each worker has one of its own, made on its thread. `judged_by` tells what
  // it is, for whoever goes on with the set.
  std::function<Judge()> make_judge;
  std::string judged_by;
  int workers = 0;  // threads that decode and encode; 0: UsableCpus()
  Duration checkpoint_every = 500ms;
};

struct Progress {
  int64_t done = 0;  // pictures written or rejected, and copies
  int64_t total = 0;
  int64_t begun_at = 0;  // of `done`: by an earlier call
  int64_t rejected = 0;
  int64_t bytes_in = 0;  // by this call
};

struct PrepareSummary {
  dataset::SetFormat format = dataset::SetFormat::kFiles;
  int64_t images = 0;                                   // in the sets, copies included
  std::map<std::string, int64_t> rejected;              // by reason
  int64_t skipped = 0;                                  // as of the feed
  int64_t bytes_in = 0;                                 // of the encoded pictures that this call read
  int64_t bytes_out = 0;                                // of the pictures in the sets
  std::vector<std::pair<std::string, int64_t>> splits;  // pictures by share, in the order of the shares
  int64_t begun_at = 0;                                 // inputs that an earlier call had done
  int64_t made_again = 0;  // of its inputs: done again, because inputs changed or files of the set are gone
  bool was_finished = false;  // by an earlier call: nothing was left to do
  double wall_s = 0;
  std::optional<double> images_per_s;  // pictures that this call took in, without copies; absent where it
                                       // took no time
  LabelReport labels;                  // of the whole feed, other parts included
  const char* source_stage = "";       // what times.read went into, as of the feed
  StageTimes times;                    // of all workers together; write: of the one thread that writes
  int workers = 0;
};

// Returns the sum of what finished sets record. REQUIRES: sets of one format, at least one.
PrepareSummary SummaryOf(const std::vector<dataset::SetFacts>& sets);

// Makes the set. The folder's content depends on the pictures and the options alone, not on `workers`. Memory
// is bounded by the workers: each holds one picture, and four more wait to be written. `progress` is called
// on this thread after each picture. An unfinished set is continued up to the first input that was added,
// removed or changed. `clock` times the summary.
// - kInvalidArgument: bad options; a folder in use; a set of other options or arguments of the feed; a
//   finished set of other inputs.
// - kCancelled once `stop` is requested; kIo if the disk is full, or a source has gone or changed. The
//   pictures made so far stay, and the same call continues with them.
Result<PrepareSummary> PrepareSet(const Feed& feed, const Options& options, const Clock& clock,
                                  std::stop_token stop, const std::function<void(const Progress&)>& progress);

// The options that a set's content depends on, as set.json keeps them.
Json OptionsJson(const Options& options);

}  // namespace weir::prepare
