#include "watch/picture_turn.h"

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

namespace weir::watch {
namespace {

// A picture of `pixel_bytes` each; `step`: bytes from one row to the next.
struct Plane {
  const uint8_t* data = nullptr;
  ptrdiff_t step = 0;
  int width = 0, height = 0;
  size_t pixel_bytes = 1;
};

// The resizer of planes may read past a row's end.
constexpr size_t kSlack = 64;

std::vector<uint8_t> TurnPlane(const Plane& from, const image::Turn& turn) {
  const int width = turn.transposed ? from.height : from.width;
  const int height = turn.transposed ? from.width : from.height;
  const size_t bytes = static_cast<size_t>(width) * static_cast<size_t>(height) * from.pixel_bytes;
  std::vector<uint8_t> turned(bytes + kSlack);
  uint8_t* to = turned.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, to += from.pixel_bytes) {
      int column = turn.transposed ? y : x, row = turn.transposed ? x : y;
      if (turn.mirror_x) column = from.width - 1 - column;
      if (turn.mirror_y) row = from.height - 1 - row;
      std::memcpy(to, from.data + row * from.step + column * static_cast<ptrdiff_t>(from.pixel_bytes),
                  from.pixel_bytes);
    }
  }
  return turned;
}

}  // namespace

std::optional<image::Turn> TurnOfMatrix(std::span<const int32_t, 9> matrix) {
  const auto scale = [&](size_t a, size_t b) { return std::hypot(double(matrix[a]), double(matrix[b])); };
  if (scale(0, 3) == 0 || scale(1, 4) == 0) return image::Turn{};
  double degrees = std::atan2(matrix[1] / scale(1, 4), matrix[0] / scale(0, 3)) * 180 / std::numbers::pi;
  if (degrees < -1) degrees += 360;
  const auto is = [&](double angle) { return std::abs(degrees - angle) < 1; };
  if (is(90)) return matrix[3] > 0 ? image::Turn{true, false, false} : image::Turn{true, false, true};
  if (is(270)) return matrix[3] < 0 ? image::Turn{true, true, true} : image::Turn{true, true, false};
  if (is(180)) return image::Turn{false, matrix[0] < 0, matrix[4] < 0};
  if (is(0) || is(360)) return image::Turn{false, false, matrix[4] < 0};
  return std::nullopt;
}

image::Pixels Turned(const image::Pixels& from, const image::Turn& turn) {
  image::Pixels pixels{.width = turn.transposed ? from.height : from.width,
                       .height = turn.transposed ? from.width : from.height,
                       .channels = from.channels};
  const auto bytes = static_cast<size_t>(from.channels);
  pixels.data = TurnPlane({.data = from.data.data(),
                           .step = from.width * static_cast<ptrdiff_t>(bytes),
                           .width = from.width,
                           .height = from.height,
                           .pixel_bytes = bytes},
                          turn);
  pixels.data.resize(from.data.size());
  return pixels;
}

std::shared_ptr<const image::PlanarPixels> Turned(const image::PlanarPixels& from, const image::Turn& turn) {
  struct Owned {
    image::PlanarPixels picture;
    std::array<std::vector<uint8_t>, 3> planes;
  };
  auto owned = std::make_shared<Owned>();
  image::PlanarPixels& picture = owned->picture;
  picture = from;
  if (turn.transposed) std::swap(picture.width, picture.height);
  for (size_t i = 0; i < 3; ++i) {
    const int half = i == 0 ? 0 : 1;
    const int width = (from.width + half) >> half, height = (from.height + half) >> half;
    owned->planes[i] =
        TurnPlane({.data = from.planes[i], .step = from.steps[i], .width = width, .height = height}, turn);
    picture.planes[i] = owned->planes[i].data();
    picture.steps[i] = turn.transposed ? height : width;
  }
  return {owned, &picture};
}

}  // namespace weir::watch
