#include "run/loader.h"

#include <fmt/format.h>

#include "dataset/set.h"

namespace weir::run {
namespace {

dataset::Geometry DecodeOnly(const dataset::Geometry& geometry) {
  return {.channels = geometry.channels, .orientation = dataset::Orientation::kIgnore};
}

const dataset::PreparedSet* SetOf(const dataset::Listing& listing, const dataset::Input& input) {
  return input.set < 0 ? nullptr : listing.sets[static_cast<size_t>(input.set)].get();
}

}  // namespace

Loader::Loader(const dataset::Listing& listing, const dataset::Geometry& geometry, const Options& options)
    : listing_(listing),
      geometry_(geometry),
      options_(options),
      from_pictures_(geometry, options.decode),
      from_prepared_(DecodeOnly(geometry), options.decode) {}

image::Accepted<dataset::PixelView> Loader::Load(const dataset::Input& input) {
  auto loaded = dataset::LoadInput(listing_, input, options_.max_file_bytes);
  if (!loaded) return std::unexpected(std::move(loaded).error());
  encoded_ = *std::move(loaded);
  const dataset::PreparedSet* set = SetOf(listing_, input);
  if (set && set->facts().format == dataset::SetFormat::kRaw) {
    const dataset::Size size = *set->facts().size;
    return dataset::PixelView(reinterpret_cast<const uint8_t*>(encoded_.data()), size.width, size.height,
                              set->facts().channels);
  }
  const bool prepared = set && set->facts().geometry;
  auto pixels = (prepared ? from_prepared_ : from_pictures_).Prepare(encoded_.span());
  if (!pixels) return std::unexpected(std::move(pixels).error());
  const image::Pixels& got = **pixels;
  const std::optional<dataset::Size> wanted = geometry_.OutputSize();
  if (wanted && (got.width != wanted->width || got.height != wanted->height)) {
    return std::unexpected(image::Reject{image::RejectReason::kWrongGeometry,
                                         fmt::format("{}x{}, and the recipe wants {}x{}", got.width,
                                                     got.height, wanted->width, wanted->height)});
  }
  return dataset::PixelView(got);
}

Status CheckGeometry(const dataset::Listing& listing, const dataset::Geometry& geometry) {
  for (const auto& set : listing.sets) {
    const dataset::SetFacts& facts = set->facts();
    const bool raw = facts.format == dataset::SetFormat::kRaw;
    const bool same =
        facts.geometry && dataset::GeometryHash(*facts.geometry) == dataset::GeometryHash(geometry);
    if (raw ? same && facts.size == geometry.OutputSize() && facts.channels == geometry.channel_count()
            : same || !facts.geometry)
      continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("set {} was prepared for another geometry than the model's recipe: prepare it again with "
                    "--recipe of this model, or run over the original pictures",
                    set->folder()));
  }
  return {};
}

}  // namespace weir::run
