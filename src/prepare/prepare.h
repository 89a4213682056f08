// Pictures to a prepared data set: read, checked, resized once, written in the order they came, with what was
// rejected and why.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "data/decode.h"
#include "data/encode.h"
#include "data/recipe.h"
#include "data/reject.h"
#include "data/set.h"
#include "data/source.h"

namespace weir::prepare {

// One picture as a feed gives it.
struct FedPicture {
  std::string source;  // its name in the manifest, raw bytes; the same wherever the data lies
  std::optional<int> label;
  data::Accepted<Bytes> encoded;
};

// Where pictures come from: files (FeedFrom), or a program that draws them. `get` is called from several
// threads at once, once for each index of 0 to count - 1, roughly in order; what it gives depends on the
// index alone.
struct Feed {
  int64_t count = 0;
  std::vector<std::string> classes;  // names by label, where known
  std::function<FedPicture(int64_t index)> get;
};

// The files of a listing, and those of prepared sets with their labels. `listing` must outlive the feed.
// kUnsupported for raw sets, whose pictures have been prepared for good.
Result<Feed> FeedFrom(const data::Listing& listing, uint64_t max_file_bytes = data::kMaxFileBytes);

// What happens to a picture's pixels. Written as JPEG they lose what JPEG loses; PNG and raw keep them.
enum class Encoding { kJpeg, kPng };

struct Options {
  std::string folder;  // of the set: absent or empty
  data::SetFormat format = data::SetFormat::kFiles;
  std::optional<data::Geometry>
      geometry;  // absent: files go in byte for byte, once their decoder finds no fault
  Encoding encoding = Encoding::kJpeg;  // of files with a geometry
  data::JpegOptions jpeg;
  data::DecodeOptions decode;
  int workers = 0;        // threads that decode and encode; 0: UsableCpus()
  int64_t replicate = 0;  // once all are in, real copies are added in turn until there are so many; 0: none
  int64_t min_bytes = 0;  // smaller files are rejected
};

struct Progress {
  int64_t done = 0;  // pictures written or rejected, and copies
  int64_t total = 0;
};

struct PrepareSummary {
  int64_t images = 0;                       // in the set, copies included
  std::map<std::string, int64_t> rejected;  // by reason
  int64_t bytes_in = 0;                     // of the encoded pictures that were read
  int64_t bytes_out = 0;                    // of the pictures in the set
  double wall_s = 0;
  std::optional<double> images_per_s;  // of the feed, rejected ones included; absent where it took no time
};

// Makes the set. The folder's content depends on the pictures and the options alone, not on `workers`. Memory
// is bounded by the workers: each holds one picture, and four more wait to be written. `progress` is called
// on this thread after each picture. kInvalidArgument for bad options or a folder in use; kCancelled once
// `stop` is asked for, and then, as after any error, what was written is taken away. `clock` times the
// summary.
Result<PrepareSummary> PrepareSet(const Feed& feed, const Options& options, const Clock& clock,
                                  std::stop_token stop, const std::function<void(const Progress&)>& progress);

}  // namespace weir::prepare
