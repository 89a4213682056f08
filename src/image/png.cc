// PNG pixels by libpng, row by row: a picture is never held whole beside the window, interlaced or not.
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/exif.h"
#include "image/formats.h"

namespace weir::image {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkBytes = 12;  // length, type, checksum
constexpr uint32_t kMaxChunkMemory = 8 << 20;

// Chunks that say nothing of the pixels; their checksums are still read. iCCP and the texts are compressed,
// so reading them would only be a way in for bombs.
constexpr uint8_t kUnwanted[] =
    "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zT"
    "Xt";

struct Work {
  const DecodeJob* job = nullptr;
  Scratch* scratch = nullptr;
  Pixels* out = nullptr;
  size_t read = 0;
  bool started = false;  // the window has its shape: what comes may be shown
  char message[160] = "";
};

void Fail(png_structp png, const char* message) {
  auto& work = *static_cast<Work*>(png_get_error_ptr(png));
  std::snprintf(work.message, sizeof work.message, "PNG: %s", message);
  png_longjmp(png, 1);
}

// libpng warns of much that leaves the pixels right (colour profiles, order of chunks). What it says of the
// chunks that carry pixels means damage.
void Warn(png_structp png, const char* message) {
  const auto& work = *static_cast<Work*>(png_get_error_ptr(png));
  const std::string_view text(message);
  const bool damage = text.starts_with("IDAT") || text.starts_with("PLTE") || text.starts_with("IEND") ||
                      text.find("CRC") != text.npos;
  if (damage && !work.job->tolerate_damage) Fail(png, message);
}

void Read(png_structp png, png_bytep to, size_t count) {
  auto& work = *static_cast<Work*>(png_get_io_ptr(png));
  const size_t take = std::min(count, work.job->size() - work.read);
  // libpng asks for kilobytes at a time; where a cut file is tolerated, the last of them hold rows that can
  // be shown.
  if (take < count && (take == 0 || !work.job->tolerate_damage)) png_error(png, "the file ends too early");
  std::memcpy(to, work.job->data() + work.read, take);
  std::memset(to + take, 0, count - take);
  work.read += take;
}

void ReadHeader(png_structp png, png_infop info, Work& work) {
  const int crc = work.job->tolerate_damage ? PNG_CRC_QUIET_USE : PNG_CRC_ERROR_QUIT;
  png_set_read_fn(png, &work, Read);
  png_set_crc_action(png, crc, crc);
  png_set_user_limits(png, PNG_UINT_31_MAX,
                      PNG_UINT_31_MAX);  // CheckPixels holds the product against the limit
  png_set_chunk_malloc_max(png, kMaxChunkMemory);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kUnwanted, sizeof kUnwanted / 5);
  png_read_info(png, info);
  if (static_cast<int>(png_get_image_width(png, info)) != work.job->info.width ||
      static_cast<int>(png_get_image_height(png, info)) != work.job->info.height) {
    png_error(png, "declares two sizes");
  }
}

// Any depth and colour type to 8-bit grey or RGB on black.
void SetTransforms(png_structp png) {
  const png_color_16 black{};
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_background(png, &black, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1.0);
}

// One byte for each number that the file has, whatever it means. REQUIRES: one channel.
void KeepNumbers(png_structp png, png_infop info) {
  const png_byte type = png_get_color_type(png, info);
  if (png_get_bit_depth(png, info) == 16) png_error(png, "has numbers of 16 bits: 8 are kept at most");
  if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY && type != PNG_COLOR_TYPE_GRAY_ALPHA)
    png_error(png, "has three channels: a palette or grey levels are wanted");
  png_set_packing(png);
  png_set_strip_alpha(png);
}

// An interlaced picture comes in seven passes over all rows, each filling in some pixels: the row so far goes
// in and out again.
void ReadRows(png_structp png, Work& work, int passes) {
  const Window& window = work.job->window;
  Pixels& out = *work.out;
  const size_t bytes = static_cast<size_t>(window.width) * out.channels;
  uint8_t* line = work.scratch->data();
  uint8_t* part = line + static_cast<size_t>(window.x) * out.channels;
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < work.job->info.height; ++y) {
      const bool wanted = y >= window.y && y < window.y + window.height;
      uint8_t* row = wanted ? OutputRow(out, y - window.y) : nullptr;
      if (wanted && pass > 0) std::memcpy(part, row, bytes);
      png_read_row(png, line, nullptr);
      if (wanted) std::memcpy(row, part, bytes);
    }
  }
}

void Run(png_structp png, png_infop info, Work& work) {
  ReadHeader(png, info, work);
  if (work.job->keep_numbers) {
    KeepNumbers(png, info);
  } else {
    SetTransforms(png);
  }
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const int channels = png_get_channels(png, info);
  if (channels != 1 && channels != 3) png_error(png, "has an unknown number of channels");
  work.scratch->resize(png_get_rowbytes(png, info));
  ShapeOutput(work.job->window, channels, *work.out);
  std::memset(work.out->data.data(), 0, work.out->data.size());
  work.started = true;
  ReadRows(png, work, passes);
  png_read_end(png, nullptr);
}

bool Guarded(png_structp png, png_infop info, Work& work) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  Run(png, info, work);
  return true;
}

// The text of a chunk that may be compressed; at most so much of it.
std::string Inflate(std::string_view data) {
  constexpr size_t kMost = 1 << 20;
  std::string text(kMost, '\0');
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = kMost;
  inflate(&stream, Z_FINISH);  // what is there of a damaged one is as good as nothing
  text.resize(kMost - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

// Takes what comes before the next zero byte off the front of `data`, with that.
std::string_view TakeWord(std::string_view& data) {
  const std::string_view word = data.substr(0, data.find('\0'));
  data.remove_prefix(std::min(word.size() + 1, data.size()));
  return word;
}

// ImageMagick's way to keep EXIF: a line with a name, one with a count, then hexadecimal digits in lines.
std::optional<int> OrientationOfRawProfile(std::string_view text) {
  for (int line = 0; line < 3; ++line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::vector<uint8_t> bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) continue;
    if (high >= 0) bytes.push_back(static_cast<uint8_t>(16 * high + digit));
    high = high >= 0 ? -1 : digit;
  }
  return FindExifOrientation(bytes);
}

// Tells what the chunks of a PNG tell of the orientation: EXIF, else a profile in text, else XMP. Of each
// kind the first counts, so that a file cannot have many of them inflated.
struct PngOrientations {
  std::optional<int> exif, profile, xmp;
  bool has_profile = false, has_xmp = false;

  void Take(std::string_view type, std::string_view data) {
    if (type == "eXIf" && !exif)
      exif = FindExifOrientation({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    if (type != "tEXt" && type != "zTXt" && type != "iTXt") return;
    const std::string_view key = TakeWord(data);
    const bool is_profile =
        type != "iTXt" && (key == "Raw profile type exif" || key == "Raw profile type APP1");
    if (is_profile && !data.empty() && !std::exchange(has_profile, true))
      profile = OrientationOfRawProfile(type == "zTXt" ? Inflate(data.substr(1)) : std::string(data));
    const bool is_xmp = type == "iTXt" && key == "XML:com.adobe.xmp" && data.size() >= 2;
    if (!is_xmp || std::exchange(has_xmp, true)) return;
    const bool packed = data[0] != 0;
    data.remove_prefix(2);
    TakeWord(data);  // language
    TakeWord(data);  // the key in that
    xmp = FindXmpOrientation(packed ? Inflate(data) : std::string(data));
  }
  int Get() const { return exif ? *exif : profile ? *profile : xmp.value_or(1); }
};

}  // namespace

Accepted<PictureInfo> ReadPngInfo(std::span<const std::byte> encoded) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size());
  const auto type_at = [&](size_t at) {
    return std::string_view(reinterpret_cast<const char*>(&bytes[at + 4]), 4);
  };
  constexpr size_t kHeaderBytes = 13;
  if (bytes.size() < kSignatureBytes + kChunkBytes + kHeaderBytes || type_at(kSignatureBytes) != "IHDR") {
    return Damaged("PNG has no header chunk");
  }
  const uint32_t width = BigEndian32(&bytes[kSignatureBytes + 8]);
  const uint32_t height = BigEndian32(&bytes[kSignatureBytes + 12]);
  PngOrientations orientations;
  for (size_t at = kSignatureBytes; bytes.size() - at >= kChunkBytes;) {
    const size_t length = BigEndian32(&bytes[at]);
    if (length > bytes.size() - at - kChunkBytes || type_at(at) == "IEND") break;
    orientations.Take(type_at(at), {reinterpret_cast<const char*>(&bytes[at + 8]), length});
    at += length + kChunkBytes;
  }
  return MakeInfo(PictureFormat::kPng, width, height, orientations.Get());
}

Accepted<void> DecodePng(const DecodeJob& job, Scratch& scratch, Pixels& out) {
  Work work{.job = &job, .scratch = &scratch, .out = &out};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, Fail, Warn);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool done = info != nullptr && Guarded(png, info, work);
  png_destroy_read_struct(&png, &info, nullptr);
  if (done || (job.tolerate_damage && work.started)) return {};
  return Damaged(work.message);
}

}  // namespace weir::image
