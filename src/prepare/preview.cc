#include "prepare/preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/seed.h"
#include "dataset/line_reader.h"
#include "dataset/set.h"
#include "dataset/set_text.h"
#include "image/decode.h"
#include "image/encode.h"
#include "image/resize.h"
#include "prepare/verify_folder.h"

namespace weir::prepare {
namespace {

constexpr int kGap = 4;    // pixels between pictures
constexpr int kScale = 2;  // of the letters
constexpr int kLine = 9 * kScale;
constexpr uint8_t kPaper = 24, kInk = 220;

// Letters of 5 by 7: five columns from the left, the lowest bit on top.
struct Glyph {
  char letter;
  std::array<uint8_t, 5> columns;
};
constexpr Glyph kGlyphs[] = {{',', {0x00, 0x50, 0x30, 0x00, 0x00}}, {'-', {0x08, 0x08, 0x08, 0x08, 0x08}},
                             {'.', {0x00, 0x60, 0x60, 0x00, 0x00}}, {':', {0x00, 0x36, 0x36, 0x00, 0x00}},
                             {'0', {0x3e, 0x51, 0x49, 0x45, 0x3e}}, {'1', {0x00, 0x42, 0x7f, 0x40, 0x00}},
                             {'2', {0x42, 0x61, 0x51, 0x49, 0x46}}, {'3', {0x21, 0x41, 0x45, 0x4b, 0x31}},
                             {'4', {0x18, 0x14, 0x12, 0x7f, 0x10}}, {'5', {0x27, 0x45, 0x45, 0x45, 0x39}},
                             {'6', {0x3c, 0x4a, 0x49, 0x49, 0x30}}, {'7', {0x01, 0x71, 0x09, 0x05, 0x03}},
                             {'8', {0x36, 0x49, 0x49, 0x49, 0x36}}, {'9', {0x06, 0x49, 0x49, 0x29, 0x1e}},
                             {'a', {0x20, 0x54, 0x54, 0x54, 0x78}}, {'b', {0x7f, 0x48, 0x44, 0x44, 0x38}},
                             {'c', {0x38, 0x44, 0x44, 0x44, 0x20}}, {'d', {0x38, 0x44, 0x44, 0x48, 0x7f}},
                             {'e', {0x38, 0x54, 0x54, 0x54, 0x18}}, {'f', {0x08, 0x7e, 0x09, 0x01, 0x02}},
                             {'g', {0x0c, 0x52, 0x52, 0x52, 0x3e}}, {'h', {0x7f, 0x08, 0x04, 0x04, 0x78}},
                             {'i', {0x00, 0x44, 0x7d, 0x40, 0x00}}, {'j', {0x20, 0x40, 0x44, 0x3d, 0x00}},
                             {'k', {0x7f, 0x10, 0x28, 0x44, 0x00}}, {'l', {0x00, 0x41, 0x7f, 0x40, 0x00}},
                             {'m', {0x7c, 0x04, 0x18, 0x04, 0x78}}, {'n', {0x7c, 0x08, 0x04, 0x04, 0x78}},
                             {'o', {0x38, 0x44, 0x44, 0x44, 0x38}}, {'p', {0x7c, 0x14, 0x14, 0x14, 0x08}},
                             {'q', {0x08, 0x14, 0x14, 0x18, 0x7c}}, {'r', {0x7c, 0x08, 0x04, 0x04, 0x08}},
                             {'s', {0x48, 0x54, 0x54, 0x54, 0x20}}, {'t', {0x04, 0x3f, 0x44, 0x40, 0x20}},
                             {'u', {0x3c, 0x40, 0x40, 0x20, 0x7c}}, {'v', {0x1c, 0x20, 0x40, 0x20, 0x1c}},
                             {'w', {0x3c, 0x40, 0x30, 0x40, 0x3c}}, {'x', {0x44, 0x28, 0x10, 0x28, 0x44}},
                             {'y', {0x0c, 0x50, 0x50, 0x50, 0x3c}}, {'z', {0x44, 0x64, 0x54, 0x4c, 0x44}}};

// The sheet while it is drawn on.
class Sheet {
 public:
  Sheet(int width, int height) : pixels_{width, height, 3, {}} {
    pixels_.data.assign(static_cast<size_t>(width) * height * 3, kPaper);
  }

  // REQUIRES: it fits.
  void Paste(const image::Pixels& picture, int left, int top) {
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        const uint8_t* from = &picture.data[(static_cast<size_t>(y) * picture.width + x) * picture.channels];
        const int green = picture.channels == 3 ? 1 : 0;
        Put(left + x, top + y, {from[0], from[green], from[2 * green]});
      }
    }
  }

  // Leaves out text that does not fit on the line.
  void Write(std::string_view text, int left, int top) {
    for (const char letter : text) {
      if (left + 6 * kScale > pixels_.width) return;
      const auto* glyph = std::ranges::find(kGlyphs, letter, &Glyph::letter);
      if (glyph != std::end(kGlyphs)) Draw(*glyph, left, top);
      left += 6 * kScale;
    }
  }

  const image::Pixels& pixels() const { return pixels_; }

 private:
  void Put(int x, int y, std::array<uint8_t, 3> rgb) {
    std::memcpy(&pixels_.data[(static_cast<size_t>(y) * pixels_.width + x) * 3], rgb.data(), 3);
  }

  void Draw(const Glyph& glyph, int left, int top) {
    for (int x = 0; x < 5 * kScale; ++x) {
      for (int y = 0; y < 8 * kScale; ++y) {
        if ((glyph.columns[static_cast<size_t>(x / kScale)] >> (y / kScale) & 1) != 0)
          Put(left + x, top + y, {kInk, kInk, kInk});
      }
    }
  }

  image::Pixels pixels_;
};

// Reservoir sampling (Vitter 1985, algorithm R), then in the manifest's order.
Result<std::vector<dataset::SetEntry>> Choose(const std::string& path, int count, uint64_t seed) {
  Random random = Seed(seed).Stream("preview").MakeRandom();
  std::vector<std::pair<int64_t, std::string>> chosen;
  dataset::LineReader lines = TRY(dataset::LineReader::Open(path));
  for (int64_t i = 0;; ++i) {
    const auto line = TRY(lines.Next());
    if (!line) break;
    if (i < count) {
      chosen.emplace_back(i, *line);
    } else if (const int64_t place = random.Integer(0, i); place < count) {
      chosen[static_cast<size_t>(place)] = {i, std::string(*line)};
    }
  }
  std::ranges::sort(chosen);
  std::vector<dataset::SetEntry> entries;
  for (const auto& [number, line] : chosen)
    entries.push_back(TRY_CONTEXT(dataset::ParseSetEntry(line), path));
  return entries;
}

// A raw record's pixels in RGB, or a decoded file's; not turned.
Result<image::Pixels> PixelsOf(const dataset::SetFacts& facts, const Bytes& bytes) {
  image::Pixels pixels;
  if (facts.format == dataset::SetFormat::kRaw) {
    if (std::ssize(bytes.span()) != facts.record_bytes()) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("{} bytes are no record of {}", bytes.size(), facts.record_bytes()));
    }
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    pixels = {facts.size->width, facts.size->height, facts.channels, {at, at + bytes.size()}};
    if (facts.geometry && facts.geometry->channels == dataset::Channels::kBgr) {
      for (size_t i = 0; i + 2 < pixels.data.size(); i += 3) std::swap(pixels.data[i], pixels.data[i + 2]);
    }
    return pixels;
  }
  const image::DecodeOptions options{.tolerate_damage = true};
  const auto info = image::ReadPictureInfo(bytes.span(), options);
  if (!info) return Fail(ErrorCode::kCorrupt, info.error().detail);
  const auto decoded =
      image::Decoder().Decode(bytes.span(), *info, {0, 0, info->width, info->height}, options, pixels);
  if (!decoded) return Fail(ErrorCode::kCorrupt, decoded.error().detail);
  return pixels;
}

image::Pixels Fit(const image::Pixels& pixels, int side) {
  const int longest = std::max(pixels.width, pixels.height);
  const auto fitted = [&](int length) {
    return std::max<int64_t>(1, static_cast<int64_t>(length) * side / longest);
  };
  const int64_t width = fitted(pixels.width), height = fitted(pixels.height);
  image::Pixels out;
  image::Resizer().Resize(pixels, image::MakeAxis(pixels.width, width, 0, width),
                          image::MakeAxis(pixels.height, height, 0, height), out);
  return out;
}

}  // namespace

Result<std::string> MakePreview(const std::string& folder, const PreviewOptions& options) {
  const dataset::SetFacts facts = TRY(dataset::ReadSetFacts(folder));
  const std::vector<dataset::SetEntry> entries =
      TRY(Choose(folder + "/manifest.jsonl", options.columns * options.rows, options.seed));
  const int rows = (static_cast<int>(entries.size()) + options.columns - 1) / options.columns;
  const int cell = options.side + kGap;
  const int pictures_height = rows * cell + kGap;
  const int lines = 1 + static_cast<int>(facts.rejected.size());
  Sheet sheet(options.columns * cell + kGap, pictures_height + lines * kLine + kGap);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Bytes bytes = TRY(dataset::ReadEntry(folder, entries[i]));
    const image::Pixels small = Fit(TRY_CONTEXT(PixelsOf(facts, bytes), entries[i].source), options.side);
    const int column = static_cast<int>(i) % options.columns, row = static_cast<int>(i) / options.columns;
    sheet.Paste(small, kGap + column * cell + (options.side - small.width) / 2,
                kGap + row * cell + (options.side - small.height) / 2);
  }
  int top = pictures_height;
  sheet.Write(fmt::format("{} of {} pictures, seed {}", entries.size(), facts.images, options.seed), kGap,
              top);
  for (const auto& [reason, count] : facts.rejected) {
    top += kLine;
    sheet.Write(fmt::format("rejected: {} {}", count, reason), kGap, top);
  }
  return image::EncodeJpeg(sheet.pixels(), {.quality = 90, .sampling = image::Sampling::k420});
}

Status WritePreview(const std::string& folder, const std::string& file, const PreviewOptions& options) {
  std::string largest;
  int64_t most = -1;
  for (const std::string& set : FindSets(folder)) {
    const int64_t images = TRY(dataset::ReadSetFacts(set)).images;
    if (images > most) largest = set;  // variations show the same pictures: the first will do
    most = std::max(most, images);
  }
  if (largest.empty()) return {};
  return WriteFileWhole(file, TRY(MakePreview(largest, options)));
}

}  // namespace weir::prepare
