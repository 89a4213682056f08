// The way up of a decoded picture: the display matrix of a container or a stream. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "image/decode.h"
#include "image/exif.h"
#include "image/planar.h"

namespace weir::watch {

// Returns the turn that makes the picture upright, as ffmpeg makes it. nullopt for an angle that is not a
// right one.
std::optional<image::Turn> TurnOfMatrix(std::span<const int32_t, 9> matrix);

image::Pixels Turned(const image::Pixels& from, const image::Turn& turn);
// Owns its planes.
std::shared_ptr<const image::PlanarPixels> Turned(const image::PlanarPixels& from, const image::Turn& turn);

}  // namespace weir::watch
