#include "synth/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "image/encode.h"

namespace weir::synth {
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
struct Style {
  const char* name;
  float periods_per_side;  // of the short side: a picture of any size shows as much of the pattern
};
constexpr std::array<Style, 3> kStyles{{{"stripes", 18}, {"checks", 5}, {"dots", 8}}};  // by Texture

// The random choices of one picture.
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

Look ChooseLook(Random& random, const Palette& palette, Texture texture) {
  Look look{};
  const double shape = random.Uniform();
  look.width = shape < 0.5 ? 500 : shape < 0.75 ? 375 : static_cast<int>(random.Integer(320, 640));
  look.height = shape < 0.5 ? 375 : shape < 0.75 ? 500 : static_cast<int>(random.Integer(320, 640));
  const auto uniform = [&](double low, double high) { return static_cast<float>(random.Uniform(low, high)); };
  const auto short_side = static_cast<float>(std::min(look.width, look.height));
  look.period = short_side / kStyles[static_cast<size_t>(texture)].periods_per_side * uniform(0.85, 1.18);
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

struct Octave {
  int cell;         // pixels between the random numbers; linear in between
  float amplitude;  // of numbers spread evenly over both signs
};

// Noise as a sum of octaves, asked for row by row.
class Noise {
 public:
  Noise(int width, int height, std::initializer_list<Octave> octaves, Random& random) : row_(width) {
    for (const Octave& octave : octaves) {
      const int columns = width / octave.cell + 2, rows = height / octave.cell + 2;
      Grid grid{octave, columns, std::vector<int8_t>((static_cast<size_t>(columns) * rows + 7) / 8 * 8)};
      for (size_t i = 0; i < grid.numbers.size(); i += 8) {
        const uint64_t word = random.Next();
        std::memcpy(grid.numbers.data() + i, &word, 8);
      }
      grids_.push_back(std::move(grid));
    }
    line_.resize(row_.size() + 2);
  }

  // Valid until the next call.
  const float* Row(int y) {
    std::ranges::fill(row_, 0.0F);
    for (const Grid& grid : grids_) AddRow(grid, y);
    return row_.data();
  }

 private:
  struct Grid {
    Octave octave;
    int columns;
    std::vector<int8_t> numbers;
  };

  void AddRow(const Grid& grid, int y) {
    const int cell = grid.octave.cell, width = static_cast<int>(row_.size());
    const float step = 1.0F / static_cast<float>(cell);
    const int8_t* above = grid.numbers.data() + static_cast<size_t>(y / cell) * grid.columns;
    const int8_t* below = above + grid.columns;
    const float lower = grid.octave.amplitude * (1 / 128.0F) * static_cast<float>(y % cell) * step;
    const float upper = grid.octave.amplitude * (1 / 128.0F) - lower;
    for (int c = 0; c < grid.columns; ++c) {
      line_[c] = upper * static_cast<float>(above[c]) + lower * static_cast<float>(below[c]);
    }
    for (int c = 0, x = 0; x < width; ++c, x += cell) {
      const float slope = (line_[c + 1] - line_[c]) * step;
      const int end = std::min(cell, width - x);
      for (int k = 0; k < end; ++k) row_[x + k] += line_[c] + slope * static_cast<float>(k);
    }
  }

  std::vector<Grid> grids_;
  std::vector<float> row_, line_;
};

// 0 in the middle of each period, 1 at its ends.
float Triangle(float t) {
  const float shifted = t + 4096;  // positive, so that cutting the fraction off is floor
  const float fraction = shifted - static_cast<float>(static_cast<int>(shifted));
  return std::abs(2 * fraction - 1);
}

// As std::clamp, in the form that compiles to two instructions and no jump.
float Clamp(float value, float high) { return std::min(std::max(value, 0.0F), high); }

float Step(float edge, float sharpness, float t) { return Clamp((t - edge) * sharpness + 0.5F, 1); }

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

uint8_t ToByte(float value) { return static_cast<uint8_t>(static_cast<int>(Clamp(value, 255) + 0.5F)); }

template <Texture texture>
void Paint(const Look& look, Random& random, image::Pixels& out) {
  Noise bend(look.width, look.height, {{64, look.warp}}, random);
  // Amplitudes that fall with frequency, as the spectrum of photos does.
  Noise grain(look.width, look.height, {{32, 14}, {16, 12}, {8, 7.5F}, {4, 5.5F}, {2, 3.5F}, {1, 2.5F}},
              random);
  Noise tint(look.width, look.height, {{16, 8}, {4, 4}}, random);
  const float across = std::cos(look.angle) / look.period, down = std::sin(look.angle) / look.period;
  const float light_x = look.slope_x / static_cast<float>(look.width);
  const float light_y = look.slope_y / static_cast<float>(look.height);
  uint8_t* pixel = out.data.data();
  for (int y = 0; y < look.height; ++y) {
    const float* bent = bend.Row(y);
    const float* grey = grain.Row(y);
    const float* hue = tint.Row(y);
    const auto fy = static_cast<float>(y);
    const float row_u = fy * down + look.phase_x, row_v = fy * across + look.phase_y;
    const float row_light = look.light - 0.5F * (look.slope_x + look.slope_y) + light_y * fy;
    for (int x = 0; x < look.width; ++x, pixel += 3) {
      const auto fx = static_cast<float>(x);
      const float figure = Figure(texture, row_u + fx * across + bent[x], row_v - fx * down - bent[x]);
      const float light = row_light + light_x * fx;
      const auto channel = [&](int c, float tinted) {
        const float colour = look.ground[c] + (look.figure[c] - look.ground[c]) * figure;
        return ToByte(colour * light + grey[x] + tinted * hue[x]);
      };
      pixel[0] = channel(0, 1);
      pixel[1] = channel(1, -0.5F);
      pixel[2] = channel(2, 0.3F);
    }
  }
}

Random RandomOf(Seed seed, int64_t index) {
  return seed.Stream("made pictures").Stream(static_cast<uint64_t>(index)).MakeRandom();
}

}  // namespace

int ClassCount() { return static_cast<int>(kPalettes.size() * kStyles.size()); }

std::string ClassName(int label) {
  CHECK(label >= 0 && label < ClassCount());
  return fmt::format("{} {}", kPalettes[label / kStyles.size()].name, kStyles[label % kStyles.size()].name);
}

std::string PictureName(int64_t index) { return fmt::format("{:06}.jpg", index); }

int PictureLabel(int64_t index) { return static_cast<int>(index % ClassCount()); }

image::Pixels DrawPixels(Seed seed, int64_t index) {
  CHECK(index >= 0);
  const int label = PictureLabel(index);
  const auto texture = static_cast<Texture>(label % kStyles.size());
  Random random = RandomOf(seed, index);
  const Look look = ChooseLook(random, kPalettes[label / kStyles.size()], texture);
  image::Pixels pixels{.width = look.width, .height = look.height, .channels = 3, .data = {}};
  pixels.data.resize(static_cast<size_t>(look.width) * look.height * 3);
  switch (texture) {
    case Texture::kStripes:
      Paint<Texture::kStripes>(look, random, pixels);
      break;
    case Texture::kChecks:
      Paint<Texture::kChecks>(look, random, pixels);
      break;
    case Texture::kDots:
      Paint<Texture::kDots>(look, random, pixels);
      break;
  }
  return pixels;
}

Result<MadePicture> DrawPicture(Seed seed, int64_t index) {
  const image::Pixels pixels = DrawPixels(seed, index);
  std::string jpeg = TRY(image::EncodeJpeg(pixels, {.quality = 95, .sampling = image::Sampling::k444}));
  return MadePicture{.name = PictureName(index), .jpeg = std::move(jpeg), .label = PictureLabel(index)};
}

}  // namespace weir::synth
