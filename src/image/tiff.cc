// The first page of a TIFF by libtiff, in bands of whole strips or tiles, so that memory follows the strip
// and not the picture.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>

#include "image/formats.h"

namespace weir::image {
namespace {

// The bytes that libtiff reads, and its messages.
struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  bool past_end = false;  // it asked for bytes that are not there
  bool failed = false;
  char message[200] = "";
};

Source& SourceOf(thandle_t handle) { return *static_cast<Source*>(handle); }

tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
  Source& source = SourceOf(handle);
  const size_t left = source.bytes.size() - source.at;
  const size_t take = std::min(static_cast<size_t>(count), left);
  if (take < static_cast<size_t>(count)) source.past_end = true;
  std::memcpy(to, source.bytes.data() + source.at, take);
  source.at += take;
  return static_cast<tmsize_t>(take);
}

tmsize_t Write(thandle_t, void*, tmsize_t) { return -1; }

toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  Source& source = SourceOf(handle);
  const toff_t size = source.bytes.size();
  const toff_t target = whence == SEEK_CUR ? source.at + offset : whence == SEEK_END ? size + offset : offset;
  if (target > size) {
    source.past_end = true;
    return static_cast<toff_t>(-1);
  }
  source.at = target;
  return target;
}

int CloseNothing(thandle_t) { return 0; }

// As memory: where it reads instead, this libtiff refuses uncompressed tiles whose size is not a multiple of
// 1024. It does not write there.
int Map(thandle_t handle, void** base, toff_t* size) {
  const auto& bytes = SourceOf(handle).bytes;
  *base = const_cast<uint8_t*>(bytes.data());
  *size = bytes.size();
  return 1;
}
void UnmapNothing(thandle_t, void*, toff_t) {}

toff_t SizeOf(thandle_t handle) { return SourceOf(handle).bytes.size(); }

void Note(Source& source, const char* module, const char* format, va_list arguments) {
  if (source.failed) return;
  source.failed = true;
  const int used =
      std::snprintf(source.message, sizeof source.message, "%s: ", module == nullptr ? "TIFF" : module);
  if (used < 0 || static_cast<size_t>(used) >= sizeof source.message) return;
  std::vsnprintf(source.message + used, sizeof source.message - used, format, arguments);
}

// Both answer 1: said here, and not to the process's own handlers, which print.
int OnError(TIFF*, void* user, const char* module, const char* format, va_list arguments) {
  Note(*static_cast<Source*>(user), module, format, arguments);
  return 1;
}
// Most warnings are of tags not known. Those of the fax and JPEG decoders are of wrong data, and a tag that
// lies past the end is that of a cut file.
int OnWarning(TIFF*, void* user, const char* module, const char* format, va_list arguments) {
  Source& source = *static_cast<Source*>(user);
  const std::string_view name(module == nullptr ? "" : module);
  const bool past_end = std::string_view(format).find("IO error") != std::string_view::npos;
  if (name.starts_with("Fax") || name.starts_with("JPEGLib") || past_end)
    Note(source, module, format, arguments);
  return 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

// Reads the first directory; null when there is none.
Tiff Open(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(kMaxDecoderBytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), OnError, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), OnWarning, &source);
  return Tiff(TIFFClientOpenExt("TIFF", "r", &source, Read, Write, Seek, CloseNothing, SizeOf, Map,
                                UnmapNothing, options.get()));
}

std::string Words(const Source& source) {
  if (source.failed) return source.message;
  return source.past_end ? "TIFF points past the file's end" : "TIFF has wrong data";
}

template <typename T>
T Field(TIFF* tiff, uint32_t tag, T otherwise) {
  T value{};
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : otherwise;
}

bool IsDecodable(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_LZW:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTRLEW:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_JPEG:
      return TIFFIsCODECConfigured(compression) != 0;
    default:
      return false;
  }
}

// Rows that one read must cover: whole strips or tiles, and enough of them to be worth it.
int BandRows(TIFF* tiff, int height) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  const uint32_t unit = Field<uint32_t>(tiff, tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, 1);
  const int64_t rows = std::clamp<int64_t>(unit, 1, height);
  constexpr int64_t kFewRows = 16;
  const int64_t units = std::max<int64_t>(1, kFewRows / rows);
  return static_cast<int>(std::min<int64_t>(rows * units, height));
}

// Checks the memory that libtiff holds while it reads one band: the raster, one strip or row of tiles, and
// the strip's bytes.
Accepted<void> CheckMemory(TIFF* tiff, int width, int band_rows) {
  const int64_t unit = TIFFIsTiled(tiff) != 0 ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
  const int64_t planes =
      Field<uint16_t>(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE
          ? Field<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1)
          : 1;
  if (unit <= 0 || unit > std::numeric_limits<int64_t>::max() / 65536)
    return Damaged("TIFF has strips of no size");
  return CheckDecoderMemory(static_cast<uint64_t>(unit) * planes + uint64_t{4} * width * band_rows);
}

bool IsGrey(TIFF* tiff) {
  const auto photometric = Field<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  return photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
}

// libtiff's pixels are 0xAABBGGRR, on black already: it multiplies by alpha where the file did not.
void CopyRow(const uint32_t* raster, int count, int channels, uint8_t* to) {
  for (int i = 0; i < count; ++i) {
    *to++ = TIFFGetR(raster[i]);
    if (channels == 1) continue;
    *to++ = TIFFGetG(raster[i]);
    *to++ = TIFFGetB(raster[i]);
  }
}

struct EndImage {
  void operator()(TIFFRGBAImage* image) const { TIFFRGBAImageEnd(image); }
};

// Reads every band, since damage anywhere counts; keeps the window's rows.
bool ReadBands(TIFFRGBAImage& image, const DecodeJob& job, int band_rows, Scratch& scratch, Pixels& out) {
  const auto [width, height] = std::pair(job.info.width, job.info.height);
  const Window& window = job.window;
  scratch.resize(size_t{4} * width * band_rows);
  auto* raster = reinterpret_cast<uint32_t*>(scratch.data());
  bool whole = true;
  for (int top = 0; top < height; top += band_rows) {
    const int rows = std::min(band_rows, height - top);
    std::memset(raster, 0, scratch.size());
    image.row_offset = top;
    if (TIFFRGBAImageGet(&image, raster, width, rows) == 0) whole = false;
    if (!whole && !job.tolerate_damage) return false;
    for (int y = std::max(top, window.y); y < std::min(top + rows, window.y + window.height); ++y) {
      const uint32_t* row = raster + static_cast<size_t>(y - top) * width + window.x;
      CopyRow(row, window.width, out.channels, OutputRow(out, y - window.y));
    }
  }
  return whole;
}

}  // namespace

Accepted<PictureInfo> ReadTiffInfo(std::span<const std::byte> encoded) {
  Source source{{reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size()}};
  const Tiff tiff = Open(source);
  if (tiff == nullptr) return Damaged(Words(source));
  const int orientation = Field<uint16_t>(tiff.get(), TIFFTAG_ORIENTATION, 1);
  return MakeInfo(PictureFormat::kTiff, Field<uint32_t>(tiff.get(), TIFFTAG_IMAGEWIDTH, 0),
                  Field<uint32_t>(tiff.get(), TIFFTAG_IMAGELENGTH, 0),
                  orientation >= 1 && orientation <= 8 ? orientation : 1);
}

Accepted<void> DecodeTiff(const DecodeJob& job, Scratch& scratch, Pixels& out) {
  Source source{{job.data(), job.size()}};
  const Tiff tiff = Open(source);
  if (tiff == nullptr) return Damaged(Words(source));
  const auto compression = Field<uint16_t>(tiff.get(), TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (!IsDecodable(compression)) return Unsupported("TIFF compression " + std::to_string(compression));
  const int band_rows = BandRows(tiff.get(), job.info.height);
  TRY_STATUS(CheckMemory(tiff.get(), job.info.width, band_rows));

  char words[1024] = "";
  TIFFRGBAImage image{};
  if (TIFFRGBAImageOK(tiff.get(), words) == 0) return Unsupported(std::string("TIFF: ") + words);
  if (TIFFRGBAImageBegin(&image, tiff.get(), job.tolerate_damage ? 0 : 1, words) == 0) {
    return Damaged(std::string("TIFF: ") + words);
  }
  const std::unique_ptr<TIFFRGBAImage, EndImage> ends(&image);
  image.req_orientation = image.orientation;  // as stored: the caller turns it
  ShapeOutput(job.window, IsGrey(tiff.get()) ? 1 : 3, out);
  const bool whole = ReadBands(image, job, band_rows, scratch, out);
  if ((whole && !source.failed && !source.past_end) || job.tolerate_damage) return {};
  return Damaged(Words(source));
}

}  // namespace weir::image
