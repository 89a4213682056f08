#include "image/encode.h"

#include <fmt/format.h>
#include <png.h>

#include <cstdlib>
#include <memory>

#include "image/jpeg_guard.h"

namespace weir::image {
namespace {

constexpr int kMaxJpegSide = 65500;  // JPEG_MAX_DIMENSION of libjpeg
constexpr int kMaxPngSide = 1'000'000;

Status CheckShape(const Pixels& pixels, int max_side) {
  const bool sized =
      pixels.width >= 1 && pixels.height >= 1 && pixels.width <= max_side && pixels.height <= max_side;
  const bool shaped = pixels.channels == 1 || pixels.channels == 3;
  if (sized && shaped &&
      pixels.data.size() == static_cast<size_t>(pixels.width) * pixels.height * pixels.channels) {
    return {};
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("cannot encode {} bytes as {}x{} pixels of {} channels: sides are 1 to {}, channels 1 or 3",
                  pixels.data.size(), pixels.width, pixels.height, pixels.channels, max_side));
}

size_t RowBytes(const Pixels& pixels) { return static_cast<size_t>(pixels.width) * pixels.channels; }

struct JpegWork {
  const Pixels* pixels = nullptr;
  const JpegOptions* options = nullptr;
  JpegErrors errors;
  jpeg_compress_struct cinfo{};
  unsigned char* bytes = nullptr;  // malloc'd by libjpeg
  unsigned long size = 0;          // NOLINT: libjpeg's type
};

void SetSampling(jpeg_compress_struct& cinfo, Sampling sampling) {
  if (cinfo.num_components != 3) return;
  cinfo.comp_info[0].h_samp_factor = sampling == Sampling::k444 ? 1 : 2;
  cinfo.comp_info[0].v_samp_factor = sampling == Sampling::k420 ? 2 : 1;
}

void WriteJpeg(void* argument) {
  JpegWork& work = *static_cast<JpegWork*>(argument);
  const Pixels& pixels = *work.pixels;
  jpeg_compress_struct& cinfo = work.cinfo;
  jpeg_create_compress(&cinfo);
  jpeg_mem_dest(&cinfo, &work.bytes, &work.size);
  cinfo.image_width = pixels.width;
  cinfo.image_height = pixels.height;
  cinfo.input_components = pixels.channels;
  cinfo.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, work.options->quality, TRUE);
  cinfo.optimize_coding = work.options->standard_tables ? FALSE : TRUE;
  cinfo.restart_in_rows = work.options->restart_rows;
  SetSampling(cinfo, work.options->sampling);
  jpeg_start_compress(&cinfo, TRUE);
  for (int y = 0; y < pixels.height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data.data() + y * RowBytes(pixels));
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
}

struct PngWork {
  const Pixels* pixels = nullptr;
  std::string* bytes = nullptr;
  char message[160] = "";
};

void PngFail(png_structp png, const char* message) {
  auto& work = *static_cast<PngWork*>(png_get_error_ptr(png));
  std::snprintf(work.message, sizeof work.message, "%s", message);
  png_longjmp(png, 1);
}

void PngAppend(png_structp png, png_bytep data, size_t size) {
  static_cast<PngWork*>(png_get_io_ptr(png))->bytes->append(reinterpret_cast<const char*>(data), size);
}

bool WritePng(png_structp png, png_infop info, PngWork& work) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const Pixels& pixels = *work.pixels;
  png_set_write_fn(png, &work, PngAppend, nullptr);
  png_set_IHDR(png, info, pixels.width, pixels.height, 8,
               pixels.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int y = 0; y < pixels.height; ++y) png_write_row(png, pixels.data.data() + y * RowBytes(pixels));
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

Result<std::string> EncodeJpeg(const Pixels& pixels, const JpegOptions& options) {
  TRY_STATUS(CheckShape(pixels, kMaxJpegSide));
  if (options.quality < 1 || options.quality > 100) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("JPEG quality {} is not in 1 to 100", options.quality));
  }
  JpegWork work;
  work.pixels = &pixels;
  work.options = &options;
  work.cinfo.err = &work.errors.manager;
  const bool done = Guard(work.errors, WriteJpeg, &work);
  jpeg_destroy_compress(&work.cinfo);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(work.bytes, &std::free);
  if (!done) return Fail(ErrorCode::kInternal, fmt::format("encoding a JPEG: {}", work.errors.message));
  return std::string(reinterpret_cast<const char*>(work.bytes), work.size);
}

Result<std::string> EncodePng(const Pixels& pixels) {
  TRY_STATUS(CheckShape(pixels, kMaxPngSide));
  std::string bytes;
  PngWork work{.pixels = &pixels, .bytes = &bytes};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &work, PngFail, nullptr);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  const bool done = info != nullptr && WritePng(png, info, work);
  png_destroy_write_struct(&png, &info);
  if (!done) return Fail(ErrorCode::kInternal, fmt::format("encoding a PNG: {}", work.message));
  return bytes;
}

}  // namespace weir::image
