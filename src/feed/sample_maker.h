// One sample to its row of a batch: from the cache or its source, decoded, augmented; with its mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"
#include "feed/cache.h"
#include "feed/mask_maker.h"
#include "feed/picture.h"
#include "feed/source.h"

namespace weir::feed {

// The sources that the threads of a feed share.
struct SampleSources {
  std::shared_ptr<const Source> pictures;
  std::shared_ptr<const Source> masks;  // null: none
  std::shared_ptr<SampleCache> cache;   // null: none
  bool keep_decoded = false;
  bool tolerates_damage = false;  // so that what is kept decoded may be part of a picture
  bool cache_outlives = false;    // this feed, so that a sample's number does not tell its contents
};

// Returns the key under which a sample is kept before it is read; 0: its contents are not known then.
uint64_t CacheKeyOf(const SampleSources& from, const Source& source, int64_t sample,
                    const AugmentOptions& augment);

// The bytes of a sample that were read ahead, unchecked.
struct ReadSample {
  std::optional<image::Accepted<Bytes>> picture, mask;
};

struct SampleCounts {
  int64_t samples = 0, bytes = 0, cached = 0;
  Duration read{};
};

// One thread's own.
class SampleMaker {
 public:
  // `clock` must outlive the maker. REQUIRES: CheckAugment accepts the options.
  SampleMaker(const SampleSources& from, const AugmentOptions& augment, const image::DecodeOptions& decode,
              const Clock& clock);

  // Writes a sample at `row` and, with masks, its mask at `mask`. What was not read ahead is read.
  image::Accepted<void> Make(int64_t sample, const DrawKey& key, ReadSample ahead, std::byte* row,
                             std::byte* mask);

  SampleCounts TakeCounts() { return std::exchange(counts_, {}); }
  PictureTimes TakeTimes() { return maker_.TakeTimes(); }

 private:
  image::Accepted<void> MakePicture(int64_t sample, const DrawKey& key,
                                    std::optional<image::Accepted<Bytes>> ahead, std::byte* row);
  image::Accepted<void> MakeNew(std::span<const std::byte> bytes, uint64_t cache_key, const DrawKey& key,
                                std::byte* row);
  image::Accepted<std::span<const std::byte>> BytesOf(const Source& source, int64_t sample,
                                                      std::optional<image::Accepted<Bytes>>& ahead,
                                                      ReadBuffer& buffer);
  image::Accepted<std::span<const std::byte>> MaskBytes(int64_t sample,
                                                        std::optional<image::Accepted<Bytes>>& ahead);

  const SampleSources from_;
  const AugmentOptions augment_;
  const Clock& clock_;
  PictureMaker maker_;
  std::optional<MaskMaker> mask_maker_;
  ReadBuffer buffer_, kept_, mask_buffer_;
  SampleCounts counts_;
};

}  // namespace weir::feed
