// The first frame of a GIF by giflib, on a black canvas. The frames after it are walked over, so that a cut
// file is found.
#include <gif_lib.h>

#include <algorithm>
#include <memory>
#include <string>

#include "image/formats.h"

namespace weir::image {
namespace {

struct Reader {
  std::span<const uint8_t> bytes;
  size_t at = 0;
};

int Read(GifFileType* gif, GifByteType* to, int count) {
  auto& reader = *static_cast<Reader*>(gif->UserData);
  const size_t take = std::min(static_cast<size_t>(count), reader.bytes.size() - reader.at);
  std::memcpy(to, reader.bytes.data() + reader.at, take);
  reader.at += take;
  return static_cast<int>(take);
}

struct Close {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using Gif = std::unique_ptr<GifFileType, Close>;

std::unexpected<Reject> DamagedGif(int error) {
  const char* words = GifErrorString(error);
  return Damaged(std::string("GIF: ") + (words == nullptr ? "wrong data" : words));
}

// Goes to the first frame; gives the palette index that is transparent there, or -1.
Accepted<int> FindFrame(GifFileType* gif) {
  int transparent = -1;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return DamagedGif(gif->Error);
    if (type == TERMINATE_RECORD_TYPE) return Damaged("GIF has no frame");
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    int code = 0;
    GifByteType* block = nullptr;  // its first byte is its length
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return DamagedGif(gif->Error);
    GraphicsControlBlock control{};
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      transparent = control.TransparentColor;
    }
    while (block != nullptr) {
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return DamagedGif(gif->Error);
    }
  }
  if (DGifGetImageDesc(gif) == GIF_ERROR) return DamagedGif(gif->Error);
  return transparent;
}

struct Palette {
  const ColorMapObject* map = nullptr;
  int transparent = -1;
};

// Puts one row of palette indices where it lies in the window. False when an index has no colour.
bool PaintRow(const Palette& palette, const uint8_t* indices, const GifImageDesc& frame, int y,
              const Window& window, Pixels& out) {
  bool known = true;
  const int first = std::max(frame.Left, window.x);
  const int end = std::min(frame.Left + frame.Width, window.x + window.width);
  uint8_t* row = OutputRow(out, y - window.y);
  for (int x = first; x < end; ++x) {
    const int index = indices[x - frame.Left];
    if (index == palette.transparent) continue;
    if (index >= palette.map->ColorCount) {
      known = false;
      continue;
    }
    const GifColorType& colour = palette.map->Colors[index];
    uint8_t* pixel = row + static_cast<size_t>(x - window.x) * 3;
    pixel[0] = colour.Red;
    pixel[1] = colour.Green;
    pixel[2] = colour.Blue;
  }
  return known;
}

Accepted<void> PaintFrame(GifFileType* gif, int transparent, const DecodeJob& job, Scratch& scratch,
                          Pixels& out) {
  const GifImageDesc& frame = gif->Image;
  const Palette palette{frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap, transparent};
  if (palette.map == nullptr) return Damaged("GIF has no palette");
  // In an interlaced frame every 8th row comes first, then those between.
  struct Pass {
    int first, step;
  };
  constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  constexpr Pass kPlain[] = {{0, 1}};
  const std::span<const Pass> passes = frame.Interlace ? std::span<const Pass>(kInterlaced) : kPlain;
  scratch.resize(static_cast<size_t>(frame.Width));
  for (const Pass& pass : passes) {
    for (int line = pass.first; line < frame.Height; line += pass.step) {
      if (DGifGetLine(gif, scratch.data(), frame.Width) == GIF_ERROR) return DamagedGif(gif->Error);
      const int y = frame.Top + line;
      if (y < job.window.y || y >= job.window.y + job.window.height) continue;
      if (!PaintRow(palette, scratch.data(), frame, y, job.window, out) && !job.tolerate_damage) {
        return Damaged("GIF has a pixel of a colour that its palette lacks");
      }
    }
  }
  return {};
}

// Walks over blocks from `at` to the trailer; false when it is not there.
bool ReachesTrailer(std::span<const uint8_t> bytes, size_t at) {
  const auto skip_blocks = [&] {
    while (at < bytes.size() && bytes[at] != 0) at += size_t{1} + bytes[at];
    ++at;
  };
  while (at < bytes.size()) {
    const uint8_t kind = bytes[at++];
    if (kind == ';') return true;
    if (kind == '!') {
      ++at;
      skip_blocks();
    } else if (kind == ',') {
      if (bytes.size() - at < 9) return false;
      const uint8_t flags = bytes[at + 8];
      at += 9;
      if ((flags & 0x80) != 0) at += size_t{3} << ((flags & 7) + 1);
      ++at;  // the code size
      skip_blocks();
    } else {
      return false;
    }
  }
  return false;
}

Accepted<void> DecodeFrame(GifFileType* gif, Reader& reader, const DecodeJob& job, Scratch& scratch,
                           Pixels& out) {
  const int transparent = TRY(FindFrame(gif));
  const PictureInfo frame = TRY(MakeInfo(PictureFormat::kGif, gif->Image.Width, gif->Image.Height, 1));
  TRY_STATUS(CheckPixels(frame, job.max_pixels));
  ShapeOutput(job.window, 3, out);
  std::memset(out.data.data(), 0, out.data.size());
  const Accepted<void> painted = PaintFrame(gif, transparent, job, scratch, out);
  if (job.tolerate_damage) return {};
  TRY_STATUS(painted);
  if (!ReachesTrailer(reader.bytes, reader.at))
    return Damaged("GIF has no end: it is cut, or a block is wrong");
  return {};
}

}  // namespace

// The canvas is the logical screen, whatever part of it the first frame covers.
Accepted<PictureInfo> ReadGifInfo(std::span<const std::byte> encoded) {
  if (encoded.size() < 13) return Damaged("GIF ends inside its header");
  const auto* bytes = reinterpret_cast<const uint8_t*>(encoded.data());
  return MakeInfo(PictureFormat::kGif, LittleEndian16(bytes + 6), LittleEndian16(bytes + 8), 1);
}

Accepted<void> DecodeGif(const DecodeJob& job, Scratch& scratch, Pixels& out) {
  Reader reader{{job.data(), job.size()}};
  int error = 0;
  const Gif gif(DGifOpen(&reader, Read, &error));
  if (gif == nullptr) return DamagedGif(error);
  return DecodeFrame(gif.get(), reader, job, scratch, out);
}

}  // namespace weir::image
