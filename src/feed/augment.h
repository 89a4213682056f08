// The chances of augmentation: which box, which turn, which colours. Pure, by torchvision's laws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "feed/chance.h"

namespace weir::feed {

enum class CropRule {
  kRandomResized,  // a random box, resized to the output's size
  kCentre,         // short side resized, centre cut out: for validation
  kNone,           // every picture has the output's size already
};
inline constexpr Choices<CropRule, 3> kCropRules{
    {{CropRule::kRandomResized, "random"}, {CropRule::kCentre, "centre"}, {CropRule::kNone, "none"}}};
constexpr std::string_view ToString(CropRule rule) { return WordOf(kCropRules, rule); }

enum class ValueType { kUint8, kFloat16, kFloat32 };
inline constexpr Choices<ValueType, 3> kValueTypes{
    {{ValueType::kUint8, "uint8"}, {ValueType::kFloat16, "float16"}, {ValueType::kFloat32, "float32"}}};
constexpr std::string_view ToString(ValueType type) { return WordOf(kValueTypes, type); }
size_t BytesOf(ValueType type);

// A range of factors around 1, or of hues around 0: torchvision's ColorJitter with one number.
struct JitterOptions {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from max(0, 1 - x) to 1 + x
  double hue = 0;                                       // from -x to x, at most 0.5

  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
};

// An operation of a program's own: the seam for augmentation that is not here. Applied to the pixels of a
// sample after the colours, and before they become floats.
class PixelOperation {
 public:
  virtual ~PixelOperation() = default;
  // A text that tells the operation and its options from others. A state carries its hash.
  virtual std::string Canonical() const = 0;
  // Changes RGB pixels of uint8, interleaved. `chance` gives the numbers of this operation and this sample
  // alone: draw from nothing else. Called from several threads at once.
  virtual void Apply(uint8_t* rgb, int width, int height, Chance& chance) const = 0;
};

struct AugmentOptions {
  int width = 224, height = 224;  // of the output, pixels
  CropRule crop = CropRule::kRandomResized;
  double area_low = 0.08, area_high = 1;               // of the box, as a share of the picture
  double aspect_low = 3.0 / 4, aspect_high = 4.0 / 3;  // of the box, width over height
  int short_side = 256;                                // kCentre: the short side before the cut, pixels
  double flip = 0.5, vertical_flip = 0;                // probabilities
  double rotation = 0;  // degrees, from -x to x, around the centre; black corners
  JitterOptions jitter;
  double grayscale = 0;                                     // probability
  std::vector<std::shared_ptr<const PixelOperation>> more;  // in this order
  int mask_fill = 0;  // number of a mask's pixels outside of the picture, 0 to 255
  dataset::Orientation orientation = dataset::Orientation::kExif;

  // uint8: values from 0 to 255. Otherwise (value / 255 - mean) / std, each channel by its own.
  ValueType type = ValueType::kUint8;
  dataset::Layout layout = dataset::Layout::kNhwc;
  std::array<double, 3> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};

  size_t sample_bytes() const { return mask_bytes() * 3 * BytesOf(type); }
  size_t mask_bytes() const { return static_cast<size_t>(width) * static_cast<size_t>(height); }
};

// kInvalidArgument names the value that is not finite or out of its range.
Status CheckAugment(const AugmentOptions& options);

// A text that is the same for options that give the same values. A state carries its hash.
std::string Canonical(const AugmentOptions& options);

// Columns [x, x + width) and rows [y, y + height) of a picture, upright.
struct Box {
  int64_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

// Factors of colour, in the order in which they apply.
struct JitterDraw {
  enum class Step : uint8_t { kBrightness, kContrast, kSaturation, kHue };
  std::array<Step, 4> order{Step::kBrightness, Step::kContrast, Step::kSaturation, Step::kHue};
  double brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

// All chances of one sample.
struct Draws {
  Box box;  // kRandomResized only
  bool flip = false, vertical_flip = false, grayscale = false;
  double angle = 0;  // degrees, counter-clockwise
  JitterDraw jitter;
};

// Where the pixels of a sample came from: what its mask has to follow.
struct PlacedPicture {
  int64_t width = 0, height = 0;  // of the whole picture, upright
  bool resizes = false;           // by kCentre's short side
  Draws draws;
};

// The place of a draw: the same key gives the same draws on any machine, thread and rank.
struct DrawKey {
  uint64_t seed = 0, epoch = 0, item = 0;
};

// Returns the box of torchvision's RandomResizedCrop (get_params, 0.15): at most ten tries of an area and an
// aspect, then the largest centred box whose aspect is allowed. REQUIRES: sides of at least 1.
Box DrawBox(const AugmentOptions& options, int64_t width, int64_t height, Chance& chance);

// Returns the order and factors of torchvision's ColorJitter.
JitterDraw DrawJitter(const JitterOptions& options, Chance& chance);

// Draws for a picture of this size, upright.
Draws Draw(const AugmentOptions& options, int64_t width, int64_t height, const DrawKey& key);

}  // namespace weir::feed
