// Encoded picture to the model's input: decode, orient, resize, crop, order channels; then scale into the tensor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/clock.h"
#include "data/decode.h"
#include "data/recipe.h"

namespace weir::data {

// Keeps a decoder and buffers. One thread at a time; each thread has its own.
class Preparer {
 public:
  Preparer(const Geometry& geometry, const DecodeOptions& options);
  ~Preparer();
  Preparer(Preparer&&) noexcept;

  // The geometry's half: uint8 pixels, interleaved, in the recipe's channel order, upright, of the geometry's output size (or of
  // whatever size the resize gives). Equal to Pillow's `resize(..., BILINEAR)` and `crop` within 1 level of 255. Only the window of
  // the source that the crop needs is decoded to pixels. The result stays valid until the next call.
  Accepted<const Pixels*> Prepare(std::span<const std::byte> encoded);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The recipe's other half: `pixels` (uint8, interleaved, recipe's channel order) to one item of the input tensor at `out`:
// (x * scale - mean) / std as FP32, or raw UINT8, in the recipe's layout. `out` has InputBytes(recipe, size) bytes.
void WriteInput(const Recipe& recipe, const Pixels& pixels, std::byte* out);
size_t InputBytes(const Recipe& recipe, const Size& size);

}  // namespace weir::data
