#include "run/loader.h"

#include <fmt/format.h>

#include "data/set.h"

namespace weir::run {
namespace {

data::Geometry DecodeOnly(const data::Geometry& geometry) {
  return {.channels = geometry.channels, .orientation = data::Orientation::kIgnore};
}

const data::PreparedSet* SetOf(const data::Listing& listing, const data::Input& input) {
  return input.set < 0 ? nullptr : listing.sets[static_cast<size_t>(input.set)].get();
}

}  // namespace

Loader::Loader(const data::Listing& listing, const data::Geometry& geometry, const Options& options)
    : listing_(listing),
      geometry_(geometry),
      options_(options),
      from_pictures_(geometry, options.decode),
      from_prepared_(DecodeOnly(geometry), options.decode) {}

data::Accepted<data::PixelView> Loader::Load(const data::Input& input) {
  auto loaded = data::LoadInput(listing_, input, options_.max_file_bytes);
  if (!loaded) return std::unexpected(std::move(loaded).error());
  encoded_ = *std::move(loaded);
  const data::PreparedSet* set = SetOf(listing_, input);
  if (set && set->facts().format == data::SetFormat::kRaw) {
    const data::Size size = *set->facts().size;
    return data::PixelView(reinterpret_cast<const uint8_t*>(encoded_.data()), size.width, size.height,
                           set->facts().channels);
  }
  const bool prepared = set && set->facts().geometry;
  auto pixels = (prepared ? from_prepared_ : from_pictures_).Prepare(encoded_.span());
  if (!pixels) return std::unexpected(std::move(pixels).error());
  const data::Pixels& got = **pixels;
  const std::optional<data::Size> wanted = geometry_.OutputSize();
  if (wanted && (got.width != wanted->width || got.height != wanted->height)) {
    return std::unexpected(data::Reject{data::RejectReason::kWrongGeometry,
                                        fmt::format("{}x{}, and the recipe wants {}x{}", got.width,
                                                    got.height, wanted->width, wanted->height)});
  }
  return data::PixelView(got);
}

Status CheckGeometry(const data::Listing& listing, const data::Geometry& geometry) {
  for (const auto& set : listing.sets) {
    const data::SetFacts& facts = set->facts();
    const bool raw = facts.format == data::SetFormat::kRaw;
    const bool same = facts.geometry && data::GeometryHash(*facts.geometry) == data::GeometryHash(geometry);
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
