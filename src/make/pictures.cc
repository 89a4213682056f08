#include "make/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/encode.h"

namespace weir::make {
namespace {

using Colour = std::array<float, 3>;  // red, green, blue, 0 to 255

struct Palette {
  const char* name;
  Colour ground;
  Colour figure;
};

// Apart in mean colour and in contrast, so that light and tint do not take one for another.
constexpr std::array<Palette, 8> kPalettes{{
    {"red and yellow", {200, 40, 40}, {230, 205, 60}},
    {"blue and white", {40, 70, 190}, {220, 225, 230}},
    {"green and white", {40, 145, 55}, {225, 230, 220}},
    {"black and orange", {45, 40, 40}, {235, 140, 40}},
    {"cyan and brown", {70, 195, 205}, {125, 75, 40}},
    {"purple and lime", {95, 45, 150}, {165, 220, 70}},
    {"grey and magenta", {115, 115, 115}, {225, 60, 190}},
    {"navy and red", {30, 40, 100}, {205, 50, 60}},
}};

enum class Texture { kStripes, kChecks, kDots };
constexpr std::array kTextures{Texture::kStripes, Texture::kChecks, Texture::kDots};
constexpr std::array<const char*, 3> kTextureNames{"stripes", "checks", "dots"};
// Periods to the short side of the picture: a picture of any size shows as much of the pattern.
constexpr std::array<float, 3> kPeriodsPerSide{18, 5, 8};

// What chance decides about one picture.
struct Look {
  int width;
  int height;
  float period;  // pixels
  float angle;   // radians
  float phase_x, phase_y;
  Colour ground, figure;
  float light;             // in the middle of the picture
  float slope_x, slope_y;  // change of light from edge to edge
  float warp;              // how far the pattern is bent, in periods
};

Look ChooseLook(Random& random, const Palette& palette, size_t texture) {
  Look look{};
  const double shape = random.Uniform();
  look.width = shape < 0.5 ? 500 : shape < 0.75 ? 375 : static_cast<int>(random.Integer(320, 640));
  look.height = shape < 0.5 ? 375 : shape < 0.75 ? 500 : static_cast<int>(random.Integer(320, 640));
  const auto uniform = [&](double low, double high) { return static_cast<float>(random.Uniform(low, high)); };
  const auto short_side = static_cast<float>(std::min(look.width, look.height));
  look.period = short_side / kPeriodsPerSide[texture] * uniform(0.85, 1.18);
  look.angle = uniform(-0.6, 0.6);
  look.phase_x = uniform(0, 1);
  look.phase_y = uniform(0, 1);
  for (int c = 0; c < 3; ++c) {
    const float tint = uniform(0.93, 1.07);
    look.ground[c] = palette.ground[c] * tint + uniform(-8, 8);
    look.figure[c] = palette.figure[c] * tint + uniform(-8, 8);
  }
  look.light = uniform(0.75, 1.15);
  look.slope_x = uniform(-0.25, 0.25);
  look.slope_y = uniform(-0.25, 0.25);
  look.warp = uniform(0.1, 0.35);
  return look;
}

// Numbers of mean 0 spread evenly over [-1, 1), eight from each word of the generator.
void FillNoise(Random& random, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); i += 8) {
    uint64_t word = random.Next();
    for (size_t k = i; k < std::min(i + 8, out.size()); ++k, word >>= 8) {
      out[k] = (static_cast<float>(word & 255) - 127.5F) * (1 / 128.0F);
    }
  }
}

struct Field {
  int width;
  int height;
  std::vector<float> values;

  Field(int w, int h) : width(w), height(h), values(static_cast<size_t>(w) * h, 0.0F) {}
  float* row(int y) { return values.data() + static_cast<size_t>(y) * width; }
};

// Adds noise of one scale: a grid of random numbers `cell` pixels apart, interpolated between.
void AddOctave(Field& field, int cell, float amplitude, Random& random) {
  const int columns = field.width / cell + 2;
  const int rows = field.height / cell + 2;
  std::vector<float> grid(static_cast<size_t>(columns) * rows);
  FillNoise(random, grid);
  std::vector<float> line(columns);
  const float step = 1.0F / static_cast<float>(cell);
  for (int y = 0; y < field.height; ++y) {
    const float* above = grid.data() + static_cast<size_t>(y / cell) * columns;
    const float* below = above + columns;
    const float part = static_cast<float>(y % cell) * step;
    for (int c = 0; c < columns; ++c) line[c] = amplitude * (above[c] + (below[c] - above[c]) * part);
    float* out = field.row(y);
    if (cell == 1) {
      for (int x = 0; x < field.width; ++x) out[x] += line[x];
      continue;
    }
    for (int c = 0, x = 0; x < field.width; ++c) {
      const float slope = (line[c + 1] - line[c]) * step;
      const int end = std::min(cell, field.width - x);
      for (int k = 0; k < end; ++k) out[x + k] += line[c] + slope * static_cast<float>(k);
      x += end;
    }
  }
}

// 0 in the middle of each period, 1 at its ends.
float Triangle(float t) {
  const float shifted = t + 4096;  // positive, so that cutting the fraction off is floor
  const float fraction = shifted - static_cast<float>(static_cast<int>(shifted));
  return std::abs(2 * fraction - 1);
}

float Step(float edge, float sharpness, float t) {
  return std::clamp((t - edge) * sharpness + 0.5F, 0.0F, 1.0F);
}

// How much of the figure's colour shows at (u, v), in periods.
float Figure(Texture texture, float u, float v) {
  switch (texture) {
    case Texture::kStripes:
      return Step(0.28F, 6, Triangle(u));
    case Texture::kChecks: {
      const float a = Step(0.5F, 16, Triangle(u)), b = Step(0.5F, 16, Triangle(v));
      return a + b - 2 * a * b;
    }
    case Texture::kDots: {
      const float a = Triangle(u), b = Triangle(v);
      return Step(0, 4, 0.36F - (a * a + b * b));
    }
  }
  return 0;
}

uint8_t ToByte(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F); }

template <Texture texture>
void Paint(const Look& look, Field& warp, Field& grain, Field& tint, data::Pixels& out) {
  const float across = std::cos(look.angle) / look.period, down = std::sin(look.angle) / look.period;
  const float light_x = look.slope_x / static_cast<float>(look.width);
  const float light_y = look.slope_y / static_cast<float>(look.height);
  for (int y = 0; y < look.height; ++y) {
    const float* bend = warp.row(y);
    const float* grey = grain.row(y);
    const float* hue = tint.row(y);
    uint8_t* pixel = out.data.data() + static_cast<size_t>(y) * look.width * 3;
    const auto fy = static_cast<float>(y);
    const float light_row =
        look.light + light_y * (fy - 0.5F * static_cast<float>(look.height)) - 0.5F * look.slope_x;
    for (int x = 0; x < look.width; ++x, pixel += 3) {
      const auto fx = static_cast<float>(x);
      const float u = fx * across + fy * down + look.phase_x + look.warp * bend[x];
      const float v = fy * across - fx * down + look.phase_y - look.warp * bend[x];
      const float figure = Figure(texture, u, v);
      const float light = light_row + light_x * fx;
      const std::array<float, 3> colour_noise{hue[x], -0.5F * hue[x], 0.3F * hue[x]};
      for (int c = 0; c < 3; ++c) {
        const float colour = look.ground[c] + (look.figure[c] - look.ground[c]) * figure;
        pixel[c] = ToByte(colour * light + grey[x] + colour_noise[c]);
      }
    }
  }
}

Random RandomOf(Seed seed, int64_t index) {
  return seed.Stream("made pictures").Stream(static_cast<uint64_t>(index)).MakeRandom();
}

int LabelOf(int64_t index) { return static_cast<int>(index % ClassCount()); }

}  // namespace

int ClassCount() { return static_cast<int>(kPalettes.size() * kTextures.size()); }

std::string ClassName(int label) {
  CHECK(label >= 0 && label < ClassCount());
  return fmt::format("{} {}", kPalettes[label / kTextures.size()].name,
                     kTextureNames[label % kTextures.size()]);
}

data::Pixels DrawPixels(Seed seed, int64_t index) {
  CHECK(index >= 0);
  const int label = LabelOf(index);
  const size_t texture = label % kTextures.size();
  Random random = RandomOf(seed, index);
  const Look look = ChooseLook(random, kPalettes[label / kTextures.size()], texture);

  Field warp(look.width, look.height), grain(look.width, look.height), tint(look.width, look.height);
  AddOctave(warp, 64, 1, random);
  // Grain: amplitudes that fall with frequency, as the spectrum of photos does, then the sensor's own white
  // noise.
  for (const auto& [cell, amplitude] :
       {std::pair{32, 14.0F}, {16, 12.0F}, {8, 7.5F}, {4, 5.0F}, {2, 3.0F}, {1, 2.2F}}) {
    AddOctave(grain, cell, amplitude, random);
  }
  AddOctave(tint, 16, 8, random);
  AddOctave(tint, 4, 4, random);

  data::Pixels pixels{.width = look.width, .height = look.height, .channels = 3, .data = {}};
  pixels.data.resize(static_cast<size_t>(look.width) * look.height * 3);
  switch (kTextures[texture]) {
    case Texture::kStripes:
      Paint<Texture::kStripes>(look, warp, grain, tint, pixels);
      break;
    case Texture::kChecks:
      Paint<Texture::kChecks>(look, warp, grain, tint, pixels);
      break;
    case Texture::kDots:
      Paint<Texture::kDots>(look, warp, grain, tint, pixels);
      break;
  }
  return pixels;
}

Result<MadePicture> DrawPicture(Seed seed, int64_t index) {
  const data::Pixels pixels = DrawPixels(seed, index);
  std::string jpeg = TRY(data::EncodeJpeg(pixels, {.quality = 96, .sampling = data::Sampling::k444}));
  return MadePicture{
      .name = fmt::format("{:06}.jpg", index), .jpeg = std::move(jpeg), .label = LabelOf(index)};
}

}  // namespace weir::make
