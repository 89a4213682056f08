// One picture, as it was fed, to what goes into each set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "dataset/preparer.h"
#include "dataset/recipe.h"
#include "dataset/set.h"
#include "image/decode.h"
#include "image/encode.h"
#include "image/reject.h"
#include "prepare/feed.h"

namespace weir::prepare {

// The encoding of a picture's pixels. JPEG is lossy; PNG and raw keep them.
enum class Encoding { kJpeg, kPng };

// Whether a picture, encoded as it came, may go into the set. One thread at a time.
using Judge = std::function<image::Accepted<void>(std::span<const std::byte> encoded)>;

struct MakerOptions {
  dataset::SetFormat format = dataset::SetFormat::kFiles;
  std::vector<dataset::Geometry>
      geometries;                       // one for each set; empty: one set, of the pictures as they came
  Encoding encoding = Encoding::kJpeg;  // of pictures with a geometry that are not raw
  image::JpegOptions jpeg;
  image::DecodeOptions decode;
  bool shrink = false;  // dataset::PreparerOptions
  bool sha256 = false;
  int64_t min_bytes = 0;  // smaller files are rejected
};

// Time spent on the stages of the work.
struct StageTimes {
  Duration read{}, network{};  // getting a picture: from the disk or a generator; from the network
  Duration check{};            // hashes, and the judge
  Duration decode{}, resize{}, encode{}, write{};
  StageTimes& operator+=(const StageTimes& other);
};

// A picture as it goes into a set.
struct Made {
  Bytes bytes;
  std::string_view extension;  // of its format; empty for raw
  std::string hash, sha256;
  int width = 0, height = 0;
};

struct Outcome {
  std::string source;
  std::string state;  // Feed::state, as it was before the picture was read
  std::optional<int> label;
  int64_t bytes_in = 0;
  std::string source_hash, source_sha256;   // empty for what could not be read
  std::vector<image::Accepted<Made>> made;  // one for each set
  StageTimes times;
};

// The buffers that one worker keeps from picture to picture. One thread at a time.
class Maker {
 public:
  // `options` and `clock` must outlive it. `judge` may be empty.
  Maker(const MakerOptions& options, Judge judge, const Clock& clock);

  // kIo for a source that was there when it was listed and is gone: without it the set would not be what was
  // asked for, and it may come back; kIo for one that changed while it was read. Other errors are our own.
  Result<Outcome> Make(const Feed& feed, int64_t index);

 private:
  image::Accepted<void> Check(const Bytes& encoded, Outcome& outcome);
  image::Accepted<Made> TakeAsItIs(const Bytes& encoded);
  Result<Made> Encode(const image::Pixels& pixels);
  Status Prepare(const Bytes& encoded, Outcome& outcome);
  void Reject(const image::Reject& reject, Outcome& outcome) const;

  const MakerOptions& options_;
  const Judge judge_;
  const Clock& clock_;
  std::optional<dataset::Preparer> preparer_;
  image::Decoder decoder_;
  image::Pixels scratch_;
};

}  // namespace weir::prepare
