// A counter and a capture time as black and white blocks at the top of a picture. The blocks survive lossy
// compression and scaling, so that loss and latency have a truth.
//
// The code has 128 bits in 4 rows of 32 cells, most significant bit first; a cell's side is a fortieth of the
// picture's width, from the upper left corner. Bits: magic 0xC5A (12), stream (16), counter (32), wall time
// in microseconds since 1970 (52), CRC-16/CCITT-FALSE of the 112 bits before it (16).
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "image/decode.h"
#include "image/planar.h"

namespace weir::watch {

struct FrameCode {
  uint16_t stream = 0;
  uint32_t counter = 0;
  Duration captured{};  // wall time since 1970, whole microseconds below 2^52
  bool operator==(const FrameCode&) const = default;
};

inline constexpr int kLeastCodeWidth = 160;  // pixels; a cell is then 4 wide
// The rows of pixels that the code covers in a picture of this width.
int CodeHeight(int width);

// Draws the code. REQUIRES: width >= kLeastCodeWidth and height >= CodeHeight(width).
void BurnCode(const FrameCode& code, image::Pixels& pixels);

// Reads the code. Returns nullopt if there is none, its contrast is too low, or its check fails.
std::optional<FrameCode> ReadCode(const image::Pixels& pixels);
std::optional<FrameCode> ReadCode(const image::PlanarPixels& picture);

}  // namespace weir::watch
