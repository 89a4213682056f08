#include "image/testing/pictures.h"

#include <gif_lib.h>
#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "image/jpeg_guard.h"

namespace weir::image::testing {
namespace {

// Encoders here are given nothing they could refuse.
void Must(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "test picture: %s failed\n", what);
  std::abort();
}

J_COLOR_SPACE Space(JpegColour colour) {
  switch (colour) {
    case JpegColour::kGrey:
      return JCS_GRAYSCALE;
    case JpegColour::kYcc:
      return JCS_YCbCr;
    case JpegColour::kRgb:
      return JCS_RGB;
    case JpegColour::kCmyk:
      return JCS_CMYK;
    case JpegColour::kYcck:
      return JCS_YCCK;
  }
  return JCS_UNKNOWN;
}

// Rows as the encoder takes them: grey and RGB as they are, four components as inverted inks.
std::vector<uint8_t> JpegRows(const Pixels& pixels, const JpegShape& shape) {
  if (shape.colour != JpegColour::kCmyk && shape.colour != JpegColour::kYcck) return pixels.data;
  std::vector<uint8_t> inks;
  for (size_t i = 0; i < pixels.data.size(); i += 3) {
    const uint8_t* rgb = &pixels.data[i];
    const int black = std::max({rgb[0], rgb[1], rgb[2], uint8_t{1}});
    for (int c = 0; c < 3; ++c) inks.push_back(static_cast<uint8_t>(rgb[c] * 255 / black));
    inks.push_back(static_cast<uint8_t>(black));
  }
  return inks;
}

// Scans that leave out all but the mean of each block and its first coefficients.
void SetCoarseScans(jpeg_compress_struct& cinfo, std::vector<jpeg_scan_info>& scans) {
  scans.push_back({cinfo.num_components, {0, 1, 2, 3}, 0, 0, 0, 1});
  for (int c = 0; c < cinfo.num_components; ++c) scans.push_back({1, {c}, 1, 5, 0, 2});
  cinfo.scan_info = scans.data();
  cinfo.num_scans = static_cast<int>(scans.size());
}

void SetSeparateScans(jpeg_compress_struct& cinfo, std::vector<jpeg_scan_info>& scans) {
  for (int c = 0; c < cinfo.num_components; ++c) scans.push_back({1, {c}, 0, 63, 0, 0});
  cinfo.scan_info = scans.data();
  cinfo.num_scans = static_cast<int>(scans.size());
}

void MakeLong(JHUFF_TBL* table) {
  if (table == nullptr) return;
  for (int length = 1; length < 16; ++length) {
    table->bits[16] = static_cast<UINT8>(table->bits[16] + table->bits[length]);
    table->bits[length] = 0;
  }
}

void SetShape(jpeg_compress_struct& cinfo, const JpegShape& shape, std::vector<jpeg_scan_info>& scans) {
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, Space(shape.colour));
  jpeg_set_quality(&cinfo, shape.quality, TRUE);
  cinfo.arith_code = shape.arithmetic ? TRUE : FALSE;
  cinfo.optimize_coding = shape.codes == JpegCodes::kOwn ? TRUE : FALSE;
  for (int i = 0; i < NUM_HUFF_TBLS && shape.codes == JpegCodes::kLong; ++i) {
    MakeLong(cinfo.dc_huff_tbl_ptrs[i]);
    MakeLong(cinfo.ac_huff_tbl_ptrs[i]);
  }
  cinfo.restart_in_rows = shape.restart_rows;
  for (int c = 0; c < cinfo.num_components; ++c) {
    const bool full = c == 0 || c == 3;
    cinfo.comp_info[c].h_samp_factor = full ? shape.luma[0] : shape.chroma[0];
    cinfo.comp_info[c].v_samp_factor = full ? shape.luma[1] : shape.chroma[1];
  }
  if (shape.progressive) jpeg_simple_progression(&cinfo);
  if (shape.coarse) SetCoarseScans(cinfo, scans);
  if (shape.separate_scans) SetSeparateScans(cinfo, scans);
}

}  // namespace

Pixels MakePhoto(int width, int height, int channels, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto real = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
  };
  Pixels pixels{width, height, channels, {}};
  std::array<std::array<double, 4>, 3> waves{};
  for (auto& wave : waves) wave = {real(0.01, 0.2), real(0.01, 0.2), real(0, 6), real(60, 120)};
  const double edge_x = real(0.2, 0.8) * width;
  const double edge_y = real(0.2, 0.8) * height;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double edge = (x > edge_x) != (y > edge_y) ? 30 : -30;
      for (int c = 0; c < channels; ++c) {
        const auto& [fx, fy, phase, size] = waves[c];
        const double value = 128 + edge * (c - 1) + size * std::sin(fx * x + fy * y + phase) + real(-12, 12);
        pixels.data.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return pixels;
}

std::string WriteJpeg(const Pixels& pixels, const JpegShape& shape) {
  const std::vector<uint8_t> rows = JpegRows(pixels, shape);
  const int channels = static_cast<int>(rows.size() / pixels.width / pixels.height);
  JpegErrors errors;
  Must(setjmp(errors.escape) == 0, "libjpeg");
  jpeg_compress_struct cinfo{};
  cinfo.err = &errors.manager;
  jpeg_create_compress(&cinfo);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&cinfo, &bytes, &size);
  cinfo.image_width = pixels.width;
  cinfo.image_height = pixels.height;
  cinfo.input_components = channels;
  cinfo.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  std::vector<jpeg_scan_info> scans;
  SetShape(cinfo, shape, scans);
  jpeg_start_compress(&cinfo, TRUE);
  if (!shape.exif.empty()) {
    jpeg_write_marker(&cinfo, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(shape.exif.data()),
                      static_cast<unsigned>(shape.exif.size()));
  }
  for (int y = 0; y < pixels.height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(rows.data() + static_cast<size_t>(y) * pixels.width * channels);
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  std::string text(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&cinfo);
  std::free(bytes);
  return text;
}

std::string ExifBlock(int orientation, ByteOrder order) {
  using namespace std::string_literals;
  const char value = static_cast<char>(orientation);
  if (order == ByteOrder::kBig) {
    return "MM\0*\0\0\0\x08\0\x02\x01\x0F\0\x02\0\0\0\x01N\0\0\0\x01\x12\0\x03\0\0\0\x01\0"s + value +
           "\0\0\0\0\0\0"s;
  }
  return "II*\0\x08\0\0\0\x02\0\x0F\x01\x02\0\x01\0\0\0N\0\0\0\x12\x01\x03\0\x01\0\0\0"s + value +
         "\0\0\0\0\0\0\0"s;
}

std::string ExifSegment(int orientation, ByteOrder order) {
  return std::string("Exif\0\0", 6) + ExifBlock(orientation, order);
}

std::string WritePng(int width, int height, std::string_view rows, const PngShape& shape) {
  std::string text;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Must(setjmp(png_jmpbuf(png)) == 0, "libpng");
  png_set_write_fn(
      png, &text,
      [](png_structp at, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(at))->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, width, height, shape.depth, shape.colour_type,
               shape.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  for (size_t i = 0; i + 2 < shape.palette.size(); i += 3) {
    palette.push_back({shape.palette[i], shape.palette[i + 1], shape.palette[i + 2]});
  }
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_write_info(png, info);
  const auto write_chunk = [&](const char* name, const std::string& contents) {
    if (contents.empty()) return;
    png_write_chunk(png, reinterpret_cast<png_const_bytep>(name),
                    reinterpret_cast<png_const_bytep>(contents.data()), contents.size());
  };
  write_chunk("tRNS", shape.transparent);
  write_chunk("eXIf", shape.exif);
  const size_t row_bytes = rows.size() / height;
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < height; ++y) {
      png_write_row(png, reinterpret_cast<png_const_bytep>(rows.data() + y * row_bytes));
    }
  }
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return text;
}

namespace {

struct TiffTarget {
  std::string bytes;
  size_t at = 0;
};

TIFF* OpenTiff(TiffTarget& target) {
  return TIFFClientOpen(
      "made", "wm", &target,
      [](thandle_t handle, void* to, tmsize_t size) -> tmsize_t {
        auto& file = *static_cast<TiffTarget*>(handle);
        const size_t take = std::min<size_t>(size, file.bytes.size() - std::min(file.at, file.bytes.size()));
        std::memcpy(to, file.bytes.data() + file.at, take);
        file.at += take;
        return static_cast<tmsize_t>(take);
      },
      [](thandle_t handle, void* from, tmsize_t size) -> tmsize_t {
        auto& file = *static_cast<TiffTarget*>(handle);
        file.bytes.resize(std::max(file.bytes.size(), file.at + size));
        std::memcpy(file.bytes.data() + file.at, from, size);
        file.at += size;
        return size;
      },
      [](thandle_t handle, toff_t offset, int whence) -> toff_t {
        auto& file = *static_cast<TiffTarget*>(handle);
        file.at = whence == SEEK_SET   ? offset
                  : whence == SEEK_CUR ? file.at + offset
                                       : file.bytes.size() + offset;
        return file.at;
      },
      [](thandle_t) { return 0; },
      [](thandle_t handle) -> toff_t { return static_cast<TiffTarget*>(handle)->bytes.size(); }, nullptr,
      nullptr);
}

void SetTiffFields(TIFF* tiff, int width, int height, const TiffShape& shape) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, shape.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, shape.samples);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, shape.compression);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, shape.photometric);
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, shape.orientation);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, shape.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (shape.samples == 4) {
    uint16_t kind = shape.alpha_premultiplied ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind);
  }
  if (shape.photometric == PHOTOMETRIC_PALETTE) {
    std::array<uint16_t, 256> red{}, green{}, blue{};
    for (int i = 0; i < 256; ++i) {
      red[i] = static_cast<uint16_t>(i * 257);
      green[i] = static_cast<uint16_t>((255 - i) * 257);
      blue[i] = static_cast<uint16_t>((i ^ 0x55) * 257);
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
  }
}

// One plane's tiles, cut from rows of `row_bytes`; what lies beyond the picture is 0.
void WriteTiles(TIFF* tiff, int width, int height, std::string_view rows, int tile, int plane) {
  const size_t pixel = rows.size() / width / height;
  std::string cell(tile * tile * pixel, '\0');
  for (int top = 0; top < height; top += tile) {
    for (int left = 0; left < width; left += tile) {
      std::fill(cell.begin(), cell.end(), '\0');
      for (int y = 0; y < std::min(tile, height - top); ++y) {
        const size_t count = std::min(tile, width - left) * pixel;
        std::memcpy(&cell[y * tile * pixel], &rows[((top + y) * size_t(width) + left) * pixel], count);
      }
      Must(TIFFWriteTile(tiff, cell.data(), left, top, 0, static_cast<uint16_t>(plane)) >= 0, "a TIFF tile");
    }
  }
}

void WriteStrips(TIFF* tiff, int height, std::string_view rows, int plane) {
  const size_t row_bytes = rows.size() / height;
  std::string row;
  for (int y = 0; y < height; ++y) {
    row = rows.substr(y * row_bytes, row_bytes);  // libtiff may turn its bytes round
    Must(TIFFWriteScanline(tiff, row.data(), y, static_cast<uint16_t>(plane)) == 1, "a TIFF row");
  }
}

std::string Plane(std::string_view samples, int count, int plane) {
  std::string one;
  for (size_t i = plane; i < samples.size(); i += count) one += samples[i];
  return one;
}

}  // namespace

std::string WriteTiff(int width, int height, std::string_view samples, const TiffShape& shape) {
  TiffTarget target;
  TIFF* tiff = OpenTiff(target);
  Must(tiff != nullptr, "libtiff");
  SetTiffFields(tiff, width, height, shape);
  if (shape.tile > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, shape.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, shape.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, shape.rows_per_strip);
  }
  const int planes = shape.planar ? shape.samples : 1;
  for (int plane = 0; plane < planes; ++plane) {
    const std::string rows = shape.planar ? Plane(samples, planes, plane) : std::string(samples);
    if (shape.tile > 0) {
      WriteTiles(tiff, width, height, rows, shape.tile, plane);
    } else {
      WriteStrips(tiff, height, rows, plane);
    }
  }
  TIFFClose(tiff);
  return target.bytes;
}

std::string WriteGif(int width, int height, std::span<const uint8_t> palette,
                     std::span<const GifFrame> frames) {
  std::string text;
  int error = 0;
  GifFileType* gif = EGifOpen(
      &text,
      [](GifFileType* at, const GifByteType* data, int size) {
        static_cast<std::string*>(at->UserData)->append(reinterpret_cast<const char*>(data), size);
        return size;
      },
      &error);
  Must(gif != nullptr, "giflib");
  EGifSetGifVersion(gif, true);
  ColorMapObject* map = GifMakeMapObject(256, nullptr);
  for (size_t i = 0; i < palette.size() / 3; ++i) {
    map->Colors[i] = {palette[i * 3], palette[i * 3 + 1], palette[i * 3 + 2]};
  }
  Must(EGifPutScreenDesc(gif, width, height, 8, 0, map) == GIF_OK, "a GIF header");
  for (const GifFrame& frame : frames) {
    GraphicsControlBlock control{DISPOSE_DO_NOT, false, 10, frame.transparent};
    GifByteType block[4];
    EGifGCBToExtension(&control, block);
    EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, 4, block);
    Must(EGifPutImageDesc(gif, frame.left, frame.top, frame.width, frame.height, frame.interlaced, nullptr) ==
             GIF_OK,
         "a GIF frame");
    // The encoder takes rows in the order in which they are stored.
    std::vector<int> order;
    constexpr int kFirst[] = {0, 4, 2, 1};
    constexpr int kStep[] = {8, 8, 4, 2};
    for (int pass = 0; pass < (frame.interlaced ? 4 : 1); ++pass) {
      const int step = frame.interlaced ? kStep[pass] : 1;
      for (int y = frame.interlaced ? kFirst[pass] : 0; y < frame.height; y += step) order.push_back(y);
    }
    for (const int y : order) {
      std::string row = frame.indices.substr(static_cast<size_t>(y) * frame.width, frame.width);
      Must(EGifPutLine(gif, reinterpret_cast<GifPixelType*>(row.data()), frame.width) == GIF_OK, "a GIF row");
    }
  }
  GifFreeMapObject(map);
  EGifCloseFile(gif, &error);
  return text;
}

std::string WriteBmp(const Pixels& pixels) {
  const size_t row_bytes = (static_cast<size_t>(pixels.width) * 3 + 3) / 4 * 4;
  std::string text = "BM";
  const auto put32 = [&](uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(value >> shift);
  };
  put32(static_cast<uint32_t>(54 + row_bytes * pixels.height));
  put32(0);
  put32(54);
  put32(40);
  put32(pixels.width);
  put32(pixels.height);
  put32(1 | 24 << 16);  // planes, bits
  for (int i = 0; i < 6; ++i) put32(0);
  for (int y = pixels.height - 1; y >= 0; --y) {
    std::string row;
    for (int x = 0; x < pixels.width; ++x) {
      const uint8_t* rgb = &pixels.data[(static_cast<size_t>(y) * pixels.width + x) * 3];
      for (const int c : {2, 1, 0}) row += static_cast<char>(rgb[c]);
    }
    row.resize(row_bytes);
    text += row;
  }
  return text;
}

std::string WriteWebp(const Pixels& pixels, const WebpShape& shape) {
  std::vector<uint8_t> rgba;
  for (size_t i = 0; i < pixels.data.size() / 3; ++i) {
    rgba.insert(rgba.end(), &pixels.data[i * 3], &pixels.data[i * 3] + 3);
    rgba.push_back(shape.alpha.empty() ? 255 : static_cast<uint8_t>(shape.alpha[i]));
  }
  WebPConfig config;
  WebPPicture picture;
  Must(WebPConfigInit(&config) != 0 && WebPPictureInit(&picture) != 0, "libwebp");
  config.lossless = shape.lossless ? 1 : 0;
  config.exact = 1;
  config.method = 1;
  picture.use_argb = config.lossless;
  picture.width = pixels.width;
  picture.height = pixels.height;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  Must(WebPPictureImportRGBA(&picture, rgba.data(), pixels.width * 4) != 0, "a WebP picture");
  Must(WebPEncode(&config, &picture) != 0, "a WebP");
  std::string text(reinterpret_cast<const char*>(writer.mem), writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return text;
}

}  // namespace weir::image::testing
