// One encoded picture, or raw record, to the values of one row of a batch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/clock.h"
#include "dataset/preparer.h"
#include "feed/augment.h"
#include "feed/box_decoder.h"
#include "image/decode.h"

namespace weir::feed {

// Time that a PictureMaker spent in each step.
struct PictureTimes {
  Duration decode{};   // decoding and resizing
  Duration augment{};  // flips, rotation, colours, conversion, writing into the row
};

// Makes rows of a batch. Keeps decoders and buffers. One thread at a time; each thread has its own.
class PictureMaker {
 public:
  // `clock` times the steps and must outlive the maker. REQUIRES: CheckAugment accepts the options.
  PictureMaker(const AugmentOptions& options, const image::DecodeOptions& decode, const Clock& clock);
  ~PictureMaker();

  // Writes options.sample_bytes() bytes at `row`. Rejects what the decoder rejects, and kWrongGeometry for a
  // picture of another size than CropRule::kNone wants.
  image::Accepted<void> MakeEncoded(std::span<const std::byte> encoded, const DrawKey& key, std::byte* row);
  // The same of a raw record's pixels.
  image::Accepted<void> MakeRaw(std::span<const std::byte> pixels, const RawShape& shape, const DrawKey& key,
                                std::byte* row);

  // Returns the pixels from which MakeRaw makes all that MakeEncoded makes of this picture, to the bit: the
  // whole picture, or with kCentre its prepared centre. Null if there are none, because EXIF turns the
  // picture. They are valid until the next call of another function.
  image::Accepted<const image::Pixels*> DecodeToKeep(std::span<const std::byte> encoded);

  // Where the last picture's pixels came from. Of a raw record with kCentre: of its prepared centre.
  const PlacedPicture& placed() const;

  // Returns the times since the last call.
  PictureTimes TakeTimes();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::feed
