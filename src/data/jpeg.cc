// JPEG pixels by libjpeg-turbo. Only the window's rows and columns go through the inverse transform, but
// every coefficient is read: damage below the window is found as well.
#include <algorithm>
#include <utility>

#include "data/formats.h"
#include "data/jpeg_guard.h"

namespace weir::data {
namespace {

// Chroma is interpolated from its neighbours, and the edge of a cropped row is taken for the picture's edge.
// With this many columns more on either side, the window's own are those of a full decode.
constexpr JDIMENSION kMarginColumns = 4;
// More scans than any encoder writes; each walks over the whole picture, so a small file could cost hours.
constexpr int kMaxScans = 500;

struct Work {
  const DecodeJob* job = nullptr;
  Scratch* scratch = nullptr;
  Pixels* out = nullptr;
  JpegErrors errors;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct cinfo{};
};

void LimitScans(j_common_ptr cinfo) {
  if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number > kMaxScans) {
    FailJpeg(cinfo, RejectReason::kUnsupported, "JPEG of more than 500 scans");
  }
}

J_COLOR_SPACE OutputSpace(J_COLOR_SPACE stored) {
  switch (stored) {
    case JCS_GRAYSCALE:
      return JCS_GRAYSCALE;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return JCS_RGB;
  }
}

void Start(Work& work) {
  jpeg_decompress_struct& cinfo = work.cinfo;
  const DecodeJob& job = *work.job;
  jpeg_create_decompress(&cinfo);
  cinfo.mem->max_memory_to_use = static_cast<long>(kMaxDecoderBytes);
  work.progress.progress_monitor = LimitScans;
  cinfo.progress = &work.progress;
  jpeg_mem_src(&cinfo, job.data(), job.size());
  jpeg_read_header(&cinfo, TRUE);
  if (static_cast<int>(cinfo.image_width) != job.info.width ||
      static_cast<int>(cinfo.image_height) != job.info.height) {
    FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged, "JPEG declares two sizes");
  }
  cinfo.out_color_space = OutputSpace(cinfo.jpeg_color_space);
  jpeg_start_decompress(&cinfo);
}

// Photoshop, and after it every other writer, stores the inks inverted; so do we read them, with or without
// its Adobe marker. The arithmetic is Pillow's: black - black * (255 - ink) / 255.
void InvertedCmykToRgb(const uint8_t* cmyk, int count, uint8_t* rgb) {
  for (int i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const int black = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * black + 128;
      rgb[c] = static_cast<uint8_t>(black - (((product >> 8) + product) >> 8));
    }
  }
}

// Reads the window's rows; rows of `cinfo` begin at picture column `first_column`.
void ReadWindow(Work& work, JDIMENSION first_column) {
  jpeg_decompress_struct& cinfo = work.cinfo;
  const Window& window = work.job->window;
  Pixels& out = *work.out;
  const size_t offset = (window.x - first_column) * static_cast<size_t>(cinfo.output_components);
  const bool cmyk = cinfo.out_color_space == JCS_CMYK;
  const bool direct = !cmyk && static_cast<int>(cinfo.output_width) == window.width;
  for (int row = 0; row < window.height;) {
    uint8_t* target = OutputRow(out, row);
    JSAMPROW line = direct ? target : work.scratch->data();
    if (jpeg_read_scanlines(&cinfo, &line, 1) == 0) continue;
    if (cmyk) {
      InvertedCmykToRgb(line + offset, window.width, target);
    } else if (!direct) {
      std::memcpy(target, line + offset, static_cast<size_t>(window.width) * out.channels);
    }
    ++row;
  }
}

// Entropy-decodes to the end marker. Asked to skip to the very bottom, libjpeg-turbo 2.1 would stop reading
// instead, so the last row is left to be read.
void ReadToEnd(Work& work) {
  jpeg_decompress_struct& cinfo = work.cinfo;
  if (jpeg_has_multiple_scans(&cinfo)) return;  // jpeg_start_decompress has read them all
  const JDIMENSION left = cinfo.output_height - cinfo.output_scanline;
  if (left > 1) jpeg_skip_scanlines(&cinfo, left - 1);
  JSAMPROW line = work.scratch->data();
  while (cinfo.output_scanline < cinfo.output_height) jpeg_read_scanlines(&cinfo, &line, 1);
  jpeg_finish_decompress(&cinfo);
}

void Run(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  jpeg_decompress_struct& cinfo = work.cinfo;
  const Window& window = work.job->window;
  Start(work);

  const JDIMENSION left = std::max<JDIMENSION>(window.x, kMarginColumns) - kMarginColumns;
  const JDIMENSION right = std::min<JDIMENSION>(window.x + window.width + kMarginColumns, cinfo.output_width);
  JDIMENSION first_column = left;
  JDIMENSION columns = right - left;
  jpeg_crop_scanline(&cinfo, &first_column, &columns);

  work.scratch->resize(static_cast<size_t>(cinfo.output_width) * cinfo.output_components);
  ShapeOutput(window, cinfo.out_color_space == JCS_GRAYSCALE ? 1 : 3, *work.out);
  if (window.y > 0) jpeg_skip_scanlines(&cinfo, window.y);
  ReadWindow(work, first_column);
  ReadToEnd(work);
}

}  // namespace

// The decoder is made anew for each picture (a few microseconds): a kept one also keeps the tables of the
// last picture, and would decode one that lacks its own with them.
Accepted<void> DecodeJpeg(const DecodeJob& job, Scratch& scratch, Pixels& out) {
  Work work;
  work.job = &job;
  work.scratch = &scratch;
  work.out = &out;
  work.errors.strict = !job.tolerate_damage;
  work.cinfo.err = &work.errors.manager;
  const bool done = Guard(work.errors, Run, &work);
  jpeg_destroy_decompress(&work.cinfo);
  if (!done) return Refuse(work.errors.reason, work.errors.message);
  return {};
}

}  // namespace weir::data
