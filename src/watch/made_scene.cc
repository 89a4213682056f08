#include "watch/made_scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/seed.h"
#include "watch/frame_code.h"

namespace weir::watch {
namespace {

constexpr int kBlockRow = 16;  // pixels of a row of blocks at 4:2:0

using Colour = MadeScene::Colour;

void Fill(image::Pixels& pixels, int x0, int y0, int x1, int y1, const Colour& colour) {
  x0 = std::clamp(x0, 0, pixels.width);
  x1 = std::clamp(x1, x0, pixels.width);
  y0 = std::clamp(y0, 0, pixels.height);
  y1 = std::clamp(y1, y0, pixels.height);
  for (int y = y0; y < y1; ++y) {
    uint8_t* at = pixels.data.data() + (static_cast<size_t>(y) * pixels.width + x0) * 3;
    for (int x = x0; x < x1; ++x, at += 3) std::copy(colour.begin(), colour.end(), at);
  }
}

// A background of slow waves and a little noise, so that a picture costs what a photo costs.
image::Pixels DrawBackground(Random& random, int width, int height) {
  image::Pixels pixels{.width = width, .height = height, .channels = 3};
  pixels.data.resize(static_cast<size_t>(width) * height * 3);
  const double fx = random.Uniform(0.01, 0.05), fy = random.Uniform(0.01, 0.05), phase = random.Uniform(0, 6);
  const std::array<double, 3> base{random.Uniform(80, 150), random.Uniform(80, 150), random.Uniform(80, 150)};
  uint8_t* at = pixels.data.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double wave = 35 * std::sin(fx * x + phase) * std::cos(fy * y);
      const double noise = static_cast<double>(random.Next() & 15) - 8;
      for (const double channel : base)
        *at++ = static_cast<uint8_t>(std::clamp(channel + wave + noise, 0.0, 255.0));
    }
  }
  return pixels;
}

MadeScene::Person MakePerson(Random& random, int index, int persons) {
  const auto colour = [&] {
    return Colour{static_cast<uint8_t>(random.Integer(0, 255)), static_cast<uint8_t>(random.Integer(0, 255)),
                  static_cast<uint8_t>(random.Integer(0, 255))};
  };
  const auto skin = static_cast<uint8_t>(random.Integer(120, 230));
  const double lane = (index + 0.5) / persons;
  return {.skin = {skin, static_cast<uint8_t>(skin * 3 / 4), static_cast<uint8_t>(skin * 3 / 5)},
          .shirt = colour(),
          .stripe = colour(),
          .trousers = colour(),
          .centre = lane,
          .reach = 0.3 / persons,
          .phase = random.Uniform(0, 2 * std::numbers::pi),
          .height = random.Uniform(0.45, 0.6)};
}

// Draws the person and returns its box.
Box DrawPerson(const MadeScene::Person& person, int phase, int top, image::Pixels& pixels) {
  const double angle = person.phase + 2 * std::numbers::pi * phase / MadeScene::kPhases;
  const int ground = pixels.height - 4, height = static_cast<int>(person.height * (ground - top));
  const int width = std::max(8, height * 2 / 5);
  const int x = static_cast<int>((person.centre + person.reach * std::sin(angle)) * pixels.width) - width / 2;
  const int y = ground - height;
  const int head = height / 5, waist = y + height * 3 / 5;
  Fill(pixels, x + width / 3, y, x + width * 2 / 3, y + head, person.skin);
  for (int line = y + head; line < waist; ++line)
    Fill(pixels, x, line, x + width, line + 1, (line - y) / 6 % 2 == 0 ? person.shirt : person.stripe);
  Fill(pixels, x + width / 8, waist, x + width * 7 / 16, ground, person.trousers);
  Fill(pixels, x + width * 9 / 16, waist, x + width * 7 / 8, ground, person.trousers);
  const auto share = [](int value, int side) {
    return std::clamp(static_cast<float>(value) / static_cast<float>(side), 0.0F, 1.0F);
  };
  return {share(x, pixels.width), share(y, pixels.height), share(x + width, pixels.width),
          share(ground, pixels.height)};
}

}  // namespace

int StripHeight(int width) { return (CodeHeight(width) + kBlockRow - 1) / kBlockRow * kBlockRow; }

MadeScene::MadeScene(const MadeSpec& spec, int width, int height) {
  Random background = Seed(spec.seed).Stream("background").MakeRandom();
  Random looks = Seed(spec.seed).Stream("persons").MakeRandom();
  empty_ = DrawBackground(background, width, height);
  for (int i = 0; i < spec.persons; ++i) persons_.push_back(MakePerson(looks, i, spec.persons));
}

image::Pixels MadeScene::Draw(int phase, std::vector<Box>* boxes) const {
  image::Pixels pixels = empty_;
  const int strip = StripHeight(empty_.width);
  for (const Person& person : persons_) {
    const Box box = DrawPerson(person, phase, strip, pixels);
    if (boxes != nullptr) boxes->push_back(box);
  }
  return pixels;
}

image::Pixels DrawStrip(int width, int channels, const FrameCode& code) {
  constexpr uint8_t kGrey = 128;
  image::Pixels strip{.width = width, .height = StripHeight(width), .channels = channels};
  strip.data.assign(static_cast<size_t>(width) * strip.height * channels, kGrey);
  BurnCode(code, strip);
  return strip;
}

}  // namespace weir::watch
