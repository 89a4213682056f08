#include "dataset/recipe.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/file.h"
#include "dataset/labels.h"
#include "yaml/strict.h"

namespace weir::dataset {
namespace {

constexpr size_t kMaxRecipeBytes = 64 << 10;
constexpr int kMaxSide = 16384;

using yaml::Into;
using yaml::Node;
using yaml::Place;
using yaml::ReadChoice;
using yaml::ReadMap;
using yaml::ReadText;
using yaml::Refuse;

Result<double> ReadFinite(const Node& node, const Place& place) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return yaml::ReadNumber<double>(node, place, -kMost, kMost);
}

Result<double> ReadDivisor(const Node& node, const Place& place) {
  const double value = TRY(ReadFinite(node, place));
  if (value == 0) return Refuse(place, "may not be 0");
  return value;
}

Result<int> ReadSide(const Node& node, const Place& place) {
  return yaml::ReadNumber(node, place, 1, kMaxSide);
}

constexpr Choices<bool, 1> kFilters{{{true, "bilinear"}}};

Result<Size> ReadSize(const Node& node, const Place& place) {
  Size size;
  TRY_STATUS(
      ReadMap(node, place, {{"width", Into(size.width, ReadSide)}, {"height", Into(size.height, ReadSide)}}));
  if (size.width == 0 || size.height == 0) return Refuse(place, "wants both width and height");
  return size;
}

Status ReadResize(const Node& node, const Place& place, Geometry& geometry) {
  Size size;
  bool filter = true;
  TRY_STATUS(ReadMap(
      node, place,
      {{"short_side", Into(geometry.short_side, ReadSide)},
       {"width", Into(size.width, ReadSide)},
       {"height", Into(size.height, ReadSide)},
       {"filter", Into(filter, [](const Node& n, const Place& p) { return ReadChoice(n, p, kFilters); })}}));
  const bool sized = size.width != 0 || size.height != 0;
  if (sized == geometry.short_side.has_value())
    return Refuse(place, "wants either short_side, or width and height");
  if (!sized) return {};
  if (size.width == 0 || size.height == 0) return Refuse(place, "wants both width and height");
  geometry.resize = size;
  return {};
}

// mean and std: one number for all channels, or a list of one for each.
struct PerChannel {
  std::vector<double> values;
  Place place;
};

template <typename ReadOne>
Result<PerChannel> ReadPerChannel(const Node& node, const Place& place, ReadOne read_one) {
  PerChannel numbers{{}, place};
  if (!node.IsSequence()) {
    numbers.values.push_back(TRY(read_one(node, place)));
    return numbers;
  }
  for (const auto& item : node) {
    if (numbers.values.size() == 3) return Refuse(place, "wants one number per channel");
    numbers.values.push_back(TRY(read_one(item, place)));
  }
  return numbers;
}

Status Spread(const std::optional<PerChannel>& numbers, int channels, std::array<double, 3>& out) {
  if (!numbers) return {};
  const std::vector<double>& values = numbers->values;
  if (values.size() == 1) {
    out.fill(values[0]);
  } else if (channels == 3 && values.size() == 3) {
    std::ranges::copy(values, out.begin());
  } else {
    return Refuse(numbers->place,
                  fmt::format("wants one number{}", channels == 3 ? ", or one per channel" : ""));
  }
  return {};
}

Result<Recipe> ReadTree(const Node& root, const Place& top, const std::string& folder) {
  Recipe recipe;
  Geometry& geometry = recipe.geometry;
  std::optional<PerChannel> mean, std;
  std::optional<Place> scaling;  // the first key that only means something for FP32
  const auto choice = [](const auto& choices) {
    return [&choices](const Node& node, const Place& place) { return ReadChoice(node, place, choices); };
  };
  const auto scaled = [&scaling](auto reader) {
    return [&scaling, reader](const Node& node, const Place& place) -> Status {
      if (!scaling) scaling = place;
      return reader(node, place);
    };
  };
  TRY_STATUS(ReadMap(
      root, top,
      {{"input", Into(recipe.input, ReadText)},
       {"layout", Into(recipe.layout, choice(kLayouts))},
       {"datatype", Into(recipe.datatype, choice(kElementTypes))},
       {"channels", Into(geometry.channels, choice(kChannelOrders))},
       {"resize", [&](const Node& node, const Place& place) { return ReadResize(node, place, geometry); }},
       {"crop", Into(geometry.crop, ReadSize)},
       {"scale", scaled(Into(recipe.scale, ReadDivisor))},
       {"mean",
        scaled(Into(mean, [](const auto& n, const Place& p) { return ReadPerChannel(n, p, ReadFinite); }))},
       {"std",
        scaled(Into(std, [](const auto& n, const Place& p) { return ReadPerChannel(n, p, ReadDivisor); }))},
       {"output", Into(recipe.output, ReadText)},
       {"softmax", Into(recipe.softmax, yaml::ReadBool)},
       {"labels", Into(recipe.labels, ReadText)},
       {"first_class", yaml::NumberInto(recipe.first_class, 0, static_cast<int>(kMostLabels))},
       {"orientation", Into(geometry.orientation, choice(kOrientations))}}));
  TRY_STATUS(Spread(mean, geometry.channel_count(), recipe.mean));
  TRY_STATUS(Spread(std, geometry.channel_count(), recipe.std));
  if (recipe.datatype == ElementType::kUint8 && scaling) {
    return Refuse(*scaling, "a UINT8 input takes the bytes as they are; leave it out, or use datatype: FP32");
  }
  if (!recipe.labels.empty())
    recipe.labels = (std::filesystem::path(folder) / recipe.labels).lexically_normal();
  return recipe;
}

// A YAML scalar that no reader can take for anything but this text.
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string FormatPerChannel(const std::array<double, 3>& values, int channels) {
  return channels == 1 ? fmt::format("[{}]", values[0])
                       : fmt::format("[{}, {}, {}]", values[0], values[1], values[2]);
}

}  // namespace

std::optional<Size> Geometry::OutputSize() const { return crop ? crop : resize; }

Result<Recipe> ParseRecipe(std::string_view text, const std::string& folder) {
  Recipe recipe;
  TRY_STATUS(yaml::ReadFile(
      text, kMaxRecipeBytes, "recipe",
      Into(recipe, [&](const Node& root, const Place& top) { return ReadTree(root, top, folder); })));
  return recipe;
}

Result<Recipe> ReadRecipe(const std::string& path) {
  const std::string text = TRY(ReadTextFile(path));
  return TRY_CONTEXT(ParseRecipe(text, std::filesystem::path(path).parent_path()),
                     fmt::format("recipe {}", path));
}

std::string FormatRecipe(const Recipe& recipe) {
  const Geometry& geometry = recipe.geometry;
  std::string yaml;
  const auto line = [&yaml](std::string_view key, std::string_view value) {
    yaml += fmt::format("{}: {}\n", key, value);
  };
  if (!recipe.input.empty()) line("input", Quote(recipe.input));
  line("layout", WordOf(kLayouts, recipe.layout));
  line("datatype", WordOf(kElementTypes, recipe.datatype));
  line("channels", WordOf(kChannelOrders, geometry.channels));
  if (geometry.short_side)
    line("resize", fmt::format("{{short_side: {}, filter: bilinear}}", *geometry.short_side));
  if (geometry.resize) {
    line("resize", fmt::format("{{width: {}, height: {}, filter: bilinear}}", geometry.resize->width,
                               geometry.resize->height));
  }
  if (geometry.crop)
    line("crop", fmt::format("{{width: {}, height: {}}}", geometry.crop->width, geometry.crop->height));
  if (recipe.datatype == ElementType::kFp32) {
    line("scale", fmt::format("{}", recipe.scale));
    line("mean", FormatPerChannel(recipe.mean, geometry.channel_count()));
    line("std", FormatPerChannel(recipe.std, geometry.channel_count()));
  }
  if (!recipe.output.empty()) line("output", Quote(recipe.output));
  line("softmax", recipe.softmax ? "true" : "false");
  if (!recipe.labels.empty()) line("labels", Quote(recipe.labels));
  line("first_class", fmt::format("{}", recipe.first_class));
  line("orientation", WordOf(kOrientations, geometry.orientation));
  return yaml;
}

std::string GeometryHash(const Geometry& geometry) {
  const auto size = [](const std::optional<Size>& s) {
    return s ? fmt::format("{}x{}", s->width, s->height) : "none";
  };
  const std::string canonical =
      fmt::format("bilinear antialiased short_side={} resize={} crop={} channels={} orientation={}",
                  geometry.short_side.value_or(0), size(geometry.resize), size(geometry.crop),
                  WordOf(kChannelOrders, geometry.channels), WordOf(kOrientations, geometry.orientation));
  return fmt::format("{:016x}", XXH3_64bits(canonical.data(), canonical.size()));
}

}  // namespace weir::dataset
