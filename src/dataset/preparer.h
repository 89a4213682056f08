// Encoded picture to the model's input: decode, orient, resize, crop, order channels; then scale into the
// tensor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "dataset/recipe.h"
#include "image/decode.h"

namespace weir::dataset {

// Where a centre crop of `shown` pixels begins on an axis of `resized` pixels: half of the difference, halves
// to the even neighbour, as Python's round() has it. Below 0 where the crop is larger.
int64_t CentreOffset(int64_t resized, int64_t shown);

// The times that a Preparer spent in each step.
struct PrepareTimes {
  Duration decode{}, resize{};
};

struct PreparerOptions {
  image::DecodeOptions decode;
  // A JPEG that is at least twice too large in both directions is decoded at a half, a quarter or an eighth
  // of its size, still at least twice too large where it can be: faster, and not to the bit what it says
  // below.
  bool shrink = false;
  const Clock* clock = nullptr;  // times the stages, where there is one; must outlive the Preparer
};

// Keeps a decoder and buffers. One thread at a time; each thread has its own.
class Preparer {
 public:
  Preparer(const Geometry& geometry, const image::DecodeOptions& options);
  // Prepares for several geometries from one decode. REQUIRES: at least one.
  static Preparer OfAll(std::vector<Geometry> geometries, const PreparerOptions& options);
  ~Preparer();
  Preparer(Preparer&&) noexcept;

  // Prepares one picture: uint8 pixels, interleaved, in the recipe's channel order, upright, of the
  // geometry's output size (or of the size that the resize gives). The result stays valid until the next
  // call. Only the window of the source that the crop needs is decoded.
  //
  // The steps are Pillow's convert("RGB") or convert("L"), `resize(..., BILINEAR)` and `crop`. The pixels
  // equal Pillow's to the bit for pictures stored upright. For pictures that EXIF turns by 90 degrees they
  // are within 1 level (in theory 2), because the two directions are rounded in the other order. A crop
  // larger than the resized picture is black around it, as Pillow's.
  //
  // Rejects what the decoder rejects, kTooManyPixels if the output itself is over the limit, and kUnsupported
  // for sides over 2^20.
  image::Accepted<const image::Pixels*> Prepare(std::span<const std::byte> encoded);

  // The same for each of the geometries, in their order.
  std::span<const image::Accepted<const image::Pixels*>> PrepareAll(std::span<const std::byte> encoded);

  // Since the last call.
  PrepareTimes TakeTimes();

 private:
  struct State;
  explicit Preparer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Somebody else's pixels, as Pixels has them: a Pixels', or a raw record's of a prepared set.
struct PixelView {
  PixelView() = default;
  PixelView(const image::Pixels& pixels)  // NOLINT: a view is meant to come about by itself
      : data(pixels.data.data()), width(pixels.width), height(pixels.height), channels(pixels.channels) {}
  PixelView(const uint8_t* data, int width, int height, int channels)
      : data(data), width(width), height(height), channels(channels) {}

  const uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 3;
};

// The floats that WriteInput makes of the 256 levels of each channel, channel after channel.
std::vector<float> LevelValues(const Recipe& recipe);

// The recipe's other half: `pixels` (uint8, interleaved, recipe's channel order) to one item of the input
// tensor at `out`: (x * scale - mean) / std as FP32, or raw UINT8, in the recipe's layout. `out` has
// InputBytes(recipe, size) bytes.
void WriteInput(const Recipe& recipe, const PixelView& pixels, std::byte* out);
size_t InputBytes(const Recipe& recipe, const Size& size);

}  // namespace weir::dataset
