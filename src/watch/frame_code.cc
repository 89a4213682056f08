#include "watch/frame_code.h"

#include <algorithm>
#include <array>
#include <bitset>

namespace weir::watch {
namespace {

constexpr int kColumns = 32, kRows = 4, kBits = kColumns * kRows, kCellsAcross = 40;
constexpr uint32_t kMagic = 0xC5A;
constexpr int kBlack = 16, kWhite = 235;
constexpr int kLeastContrast = 60;  // levels between the darkest and the brightest cell

using Bits = std::bitset<kBits>;

void Put(Bits& bits, int& at, uint64_t value, int width) {
  for (int i = width - 1; i >= 0; --i) bits[static_cast<size_t>(at++)] = (value >> i & 1) != 0;
}

uint64_t Get(const Bits& bits, int& at, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i) value = value << 1 | static_cast<uint64_t>(bits[static_cast<size_t>(at++)]);
  return value;
}

// CRC-16/CCITT-FALSE (polynomial 0x1021, start 0xFFFF), bit by bit.
uint16_t Check(const Bits& bits) {
  uint32_t crc = 0xFFFF;
  for (int i = 0; i < kBits - 16; ++i) {
    const uint32_t top = (crc >> 15 & 1) ^ static_cast<uint32_t>(bits[static_cast<size_t>(i)]);
    crc = (crc << 1 ^ (top != 0 ? 0x1021U : 0U)) & 0xFFFF;
  }
  return static_cast<uint16_t>(crc);
}

// The pixels [begin, end) of cell `index` along an axis, less a margin that the neighbours bleed into.
struct Range {
  int begin, end;
};
Range CellRange(int index, int width, double margin) {
  const double cell = static_cast<double>(width) / kCellsAcross;
  const int begin = static_cast<int>((index + margin) * cell + 0.5);
  const int end = static_cast<int>((index + 1 - margin) * cell + 0.5);
  return {begin, std::max(begin + 1, end)};
}

// One channel of a picture.
struct Levels {
  const uint8_t* data;
  ptrdiff_t row_step, step;
  int width, height;
};

}  // namespace

int CodeHeight(int width) { return CellRange(kRows - 1, width, 0).end; }

void BurnCode(const FrameCode& code, image::Pixels& pixels) {
  CHECK(pixels.width >= kLeastCodeWidth && pixels.height >= CodeHeight(pixels.width));
  Bits bits;
  int at = 0;
  Put(bits, at, kMagic, 12);
  Put(bits, at, code.stream, 16);
  Put(bits, at, code.counter, 32);
  Put(bits, at, static_cast<uint64_t>(code.captured / std::chrono::microseconds(1)), 52);
  Put(bits, at, Check(bits), 16);
  const size_t step = static_cast<size_t>(pixels.width) * pixels.channels;
  for (int row = 0; row < kRows; ++row) {
    const Range y = CellRange(row, pixels.width, 0);
    for (int column = 0; column < kColumns; ++column) {
      const Range x = CellRange(column, pixels.width, 0);
      const int level = bits[static_cast<size_t>(row * kColumns + column)] ? kWhite : kBlack;
      for (int line = y.begin; line < y.end; ++line) {
        uint8_t* const first =
            pixels.data.data() + line * step + static_cast<size_t>(x.begin) * pixels.channels;
        std::fill(first, first + static_cast<size_t>(x.end - x.begin) * pixels.channels,
                  static_cast<uint8_t>(level));
      }
    }
  }
}

static std::optional<FrameCode> ReadLevels(const Levels& picture) {
  const int width = picture.width;
  if (width < kCellsAcross || picture.height < CodeHeight(width)) return std::nullopt;
  std::array<int, kBits> levels{};
  for (int row = 0; row < kRows; ++row) {
    const Range y = CellRange(row, width, 0.25);
    for (int column = 0; column < kColumns; ++column) {
      const Range x = CellRange(column, width, 0.25);
      int64_t sum = 0;
      for (int line = y.begin; line < y.end; ++line) {
        const uint8_t* const data = picture.data + line * picture.row_step;
        for (int i = x.begin; i < x.end; ++i) sum += data[i * picture.step];
      }
      levels[static_cast<size_t>(row * kColumns + column)] =
          static_cast<int>(sum / (int64_t{y.end - y.begin} * (x.end - x.begin)));
    }
  }
  const auto [low, high] = std::ranges::minmax(levels);
  if (high - low < kLeastContrast) return std::nullopt;
  Bits bits;
  for (size_t i = 0; i < kBits; ++i) bits[i] = levels[i] * 2 > low + high;
  int at = 0;
  if (Get(bits, at, 12) != kMagic) return std::nullopt;
  FrameCode code;
  code.stream = static_cast<uint16_t>(Get(bits, at, 16));
  code.counter = static_cast<uint32_t>(Get(bits, at, 32));
  code.captured = std::chrono::microseconds(static_cast<int64_t>(Get(bits, at, 52)));
  if (Get(bits, at, 16) != Check(bits)) return std::nullopt;
  return code;
}

std::optional<FrameCode> ReadCode(const image::Pixels& pixels) {
  const int green = pixels.channels == 3 ? 1 : 0;
  return ReadLevels({pixels.data.data() + green, ptrdiff_t{pixels.width} * pixels.channels, pixels.channels,
                     pixels.width, pixels.height});
}

std::optional<FrameCode> ReadCode(const image::PlanarPixels& picture) {
  return ReadLevels({picture.planes[0], picture.steps[0], 1, picture.width, picture.height});
}

}  // namespace weir::watch
