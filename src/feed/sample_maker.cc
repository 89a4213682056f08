#include "feed/sample_maker.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <utility>

namespace weir::feed {
namespace {

// Tells apart what is kept of the same bytes: encoded, or decoded by this geometry.
uint64_t Salt(bool decoded, const SampleSources& from, const AugmentOptions& augment) {
  if (!decoded) return 1;
  std::string text =
      fmt::format("decoded 1 {} {}", ToString(augment.crop), static_cast<int>(augment.orientation));
  if (augment.crop == CropRule::kCentre)
    text += fmt::format(" {} {}x{}", augment.short_side, augment.width, augment.height);
  if (from.tolerates_damage) text += " damage";
  return XXH3_64bits(text.data(), text.size());
}

uint64_t Salted(uint64_t version, uint64_t salt) {
  const uint64_t key = Mix(version ^ Mix(salt));
  return key == 0 ? 1 : key;
}

// Whether pixels of this source's samples are kept. Of a centre they do not tell how large the picture was,
// which its mask needs to know.
bool KeepsDecoded(const SampleSources& from, const Source& source, const AugmentOptions& augment) {
  const bool is_centre_of_pair = from.masks != nullptr && augment.crop == CropRule::kCentre;
  return from.keep_decoded && &source == from.pictures.get() && !source.raw() && !source.records() &&
         !is_centre_of_pair;
}

}  // namespace

uint64_t CacheKeyOf(const SampleSources& from, const Source& source, int64_t sample,
                    const AugmentOptions& augment) {
  if (from.cache == nullptr) return 0;
  uint64_t salt = Salt(KeepsDecoded(from, source, augment), from, augment);
  uint64_t version = source.Version(sample);
  if (version == 0) {
    if (from.cache_outlives) return 0;
    version = static_cast<uint64_t>(sample) + 1;
    if (&source == from.masks.get()) salt = ~salt;
  }
  return Salted(version, salt);
}

SampleMaker::SampleMaker(const SampleSources& from, const AugmentOptions& augment,
                         const image::DecodeOptions& decode, const Clock& clock)
    : from_(from), augment_(augment), clock_(clock), maker_(augment, decode, clock) {
  if (from.masks != nullptr) mask_maker_.emplace(augment, decode);
}

// The bytes of a sample, checked: those read ahead, or read now.
image::Accepted<std::span<const std::byte>> SampleMaker::BytesOf(const Source& source, int64_t sample,
                                                                 std::optional<image::Accepted<Bytes>>& ahead,
                                                                 ReadBuffer& buffer) {
  const Instant begin = clock_.Now();
  if (!ahead) {
    const auto bytes = source.Read(sample, buffer);
    counts_.read += clock_.Now() - begin;
    if (bytes) counts_.bytes += std::ssize(*bytes);
    return bytes;
  }
  if (!*ahead) return std::unexpected(ahead->error());
  counts_.bytes += static_cast<int64_t>((*ahead)->size());
  TRY_STATUS(source.Check(sample, (*ahead)->span()));
  counts_.read += clock_.Now() - begin;
  return (*ahead)->span();
}

image::Accepted<void> SampleMaker::MakeNew(std::span<const std::byte> bytes, uint64_t cache_key,
                                           const DrawKey& key, std::byte* row) {
  if (from_.pictures->records()) {
    std::memcpy(row, bytes.data(), bytes.size());
    return {};
  }
  if (const std::optional<RawShape> shape = from_.pictures->raw())
    return maker_.MakeRaw(bytes, *shape, key, row);
  if (cache_key == 0) return maker_.MakeEncoded(bytes, key, row);
  const image::Pixels* const pixels = TRY(maker_.DecodeToKeep(bytes));
  if (pixels == nullptr) return maker_.MakeEncoded(bytes, key, row);
  const RawShape shape{pixels->width, pixels->height, pixels->channels};
  const auto data = std::as_bytes(std::span(pixels->data)).first(shape.bytes());
  from_.cache->Keep(cache_key, {shape, data});
  return maker_.MakeRaw(data, shape, key, row);
}

image::Accepted<void> SampleMaker::MakePicture(int64_t sample, const DrawKey& key,
                                               std::optional<image::Accepted<Bytes>> ahead, std::byte* row) {
  const Source& source = *from_.pictures;
  const auto make_kept = [&](const Kept& kept) {
    ++counts_.cached;
    if (kept.pixels.width > 0) return maker_.MakeRaw(kept.bytes, kept.pixels, key, row);
    return MakeNew(kept.bytes, 0, key, row);
  };
  uint64_t cache_key = CacheKeyOf(from_, source, sample, augment_);
  if (cache_key != 0) {
    if (const auto kept = from_.cache->Find(cache_key, kept_)) return make_kept(*kept);
  }
  const std::span<const std::byte> bytes = TRY(BytesOf(source, sample, ahead, buffer_));
  const bool keeps = from_.cache != nullptr;
  if (keeps && cache_key == 0) {
    // The contents tell the key. What is kept encoded would be the bytes that are here already.
    const bool decoded = KeepsDecoded(from_, source, augment_);
    cache_key = decoded ? Salted(XXH3_64bits(bytes.data(), bytes.size()), Salt(true, from_, augment_)) : 0;
    if (decoded) {
      if (const auto kept = from_.cache->Find(cache_key, kept_)) return make_kept(*kept);
    }
  }
  const bool encoded = keeps && cache_key != 0 && !KeepsDecoded(from_, source, augment_);
  TRY_STATUS(MakeNew(bytes, encoded ? 0 : cache_key, key, row));
  if (encoded) from_.cache->Keep(cache_key, {RawShape{0, 0, 0}, bytes});
  return {};
}

image::Accepted<std::span<const std::byte>> SampleMaker::MaskBytes(
    int64_t sample, std::optional<image::Accepted<Bytes>>& ahead) {
  const uint64_t cache_key = CacheKeyOf(from_, *from_.masks, sample, augment_);
  if (cache_key != 0) {
    if (const auto kept = from_.cache->Find(cache_key, mask_buffer_)) return kept->bytes;
  }
  const std::span<const std::byte> bytes = TRY(BytesOf(*from_.masks, sample, ahead, mask_buffer_));
  if (cache_key != 0) from_.cache->Keep(cache_key, {RawShape{0, 0, 0}, bytes});
  return bytes;
}

image::Accepted<void> SampleMaker::Make(int64_t sample, const DrawKey& key, ReadSample ahead, std::byte* row,
                                        std::byte* mask) {
  ++counts_.samples;
  TRY_STATUS(MakePicture(sample, key, std::move(ahead.picture), row));
  if (!mask_maker_) return {};
  return mask_maker_->Make(TRY(MaskBytes(sample, ahead.mask)), maker_.placed(), mask);
}

}  // namespace weir::feed
