// How a decoded picture becomes a model's input. Belongs to the model; written in YAML.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/error.h"

namespace weir::dataset {

enum class Layout { kNchw, kNhwc };
inline constexpr Choices<Layout, 2> kLayouts{{{Layout::kNchw, "NCHW"}, {Layout::kNhwc, "NHWC"}}};
enum class Channels { kRgb, kBgr, kGrey };
inline constexpr Choices<Channels, 3> kChannelOrders{
    {{Channels::kRgb, "RGB"}, {Channels::kBgr, "BGR"}, {Channels::kGrey, "GRAY"}}};
enum class ElementType { kFp32, kUint8 };
inline constexpr Choices<ElementType, 2> kElementTypes{
    {{ElementType::kFp32, "FP32"}, {ElementType::kUint8, "UINT8"}}};
enum class Orientation { kExif, kIgnore };
inline constexpr Choices<Orientation, 2> kOrientations{
    {{Orientation::kExif, "exif"}, {Orientation::kIgnore, "ignore"}}};

struct Size {
  int width = 0;
  int height = 0;
  bool operator==(const Size&) const = default;
};

// The half that decides which pixels: what a prepared set was made with, kept there as a hash.
struct Geometry {
  std::optional<int> short_side;  // resize so that the short side is this and the long side is rounded down
  std::optional<Size> resize;     // or to this size; at most one of the two
  std::optional<Size> crop;       // centre; offset round-half-even((resized - crop) / 2)
  Channels channels = Channels::kRgb;
  Orientation orientation = Orientation::kExif;
  bool operator==(const Geometry&) const = default;

  // The size every picture gets, where it is the same for all: the crop, or the resize to a size.
  std::optional<Size> OutputSize() const;
  int channel_count() const { return channels == Channels::kGrey ? 1 : 3; }
};

struct Recipe {
  Geometry geometry;
  std::string input;  // tensor; empty: the model's only input
  Layout layout = Layout::kNchw;
  ElementType datatype = ElementType::kFp32;
  double scale = 1;  // value = (x * scale - mean[c]) / std[c]
  std::array<double, 3> mean{0, 0, 0};
  std::array<double, 3> std{1, 1, 1};
  std::string output;    // the scores; empty: the model's only output
  bool softmax = false;  // turn the scores into probabilities for the answers
  std::string labels;  // path of the label file, made absolute or relative to the working folder; empty: none
  int first_class = 0;  // class = output index - first_class; lower indices are never an answer
};

// kInvalidArgument names the line and the key. `folder` is where the recipe lies: labels are looked for from
// there. Unknown keys, wrong types, sizes outside 1 to 16384, a scale or std that is 0 or not finite are
// refused.
Result<Recipe> ParseRecipe(std::string_view yaml, const std::string& folder);
Result<Recipe> ReadRecipe(const std::string& path);

// The same recipe as YAML text, and a hash (16 hex digits, XXH3-64 of a canonical text) of the geometry.
std::string FormatRecipe(const Recipe& recipe);
std::string GeometryHash(const Geometry& geometry);

// One label a line; line k is class k.
Result<std::vector<std::string>> ReadLabels(const std::string& path);

}  // namespace weir::dataset
