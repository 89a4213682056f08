// JPEG pixels by libjpeg-turbo. Only the window's rows and columns go through the inverse transform, but
// every coefficient is read: damage below the window is found as well.
#include <algorithm>
#include <span>
#include <utility>

#include "image/formats.h"
#include "image/jpeg_guard.h"
#include "image/jpeg_huffman.h"
#include "image/jpeg_private.h"

namespace weir::image {
namespace {

// Chroma is interpolated from its neighbours, and the edge of a cropped row is taken for the picture's edge.
// With this many columns more on either side, the window's own are those of a full decode.
constexpr JDIMENSION kMarginColumns = 4;
// More scans than any encoder writes; each walks over the whole picture, so a small file could cost hours.
constexpr int kMaxScans = 500;
constexpr int kRowsAtOnce = 8;
// Rows that are handed over together: few enough to be in the core's own cache still.
constexpr int kStripRows = 8;

struct Work {
  const DecodeJob* job = nullptr;
  JpegScratch* scratch = nullptr;
  const TakeRows* take = nullptr;  // gets the rows strip by strip; where there is none, `out` holds them all
  Pixels* out = nullptr;
  Window given;  // the window, or what is handed over of the picture
  JpegErrors errors;
  bool own_codes = false;  // scratch->huffman reads them, not libjpeg
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
  cinfo.scale_num = 1;
  cinfo.scale_denom = static_cast<unsigned>(job.shrink);
  jpeg_start_decompress(&cinfo);
  // Libjpeg decides which part of a damaged picture can be shown.
  work.own_codes = work.errors.strict && JpegHuffman::CanDecode(cinfo);
  if (work.own_codes) work.scratch->huffman->Install(cinfo);
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

// A progressive picture whose last scans are missing is smoothed across blocks, in libjpeg-turbo 2.1
// otherwise where part of it is skipped than where it is not.
bool IsCoarse(const jpeg_decompress_struct& cinfo) {
  if (cinfo.progressive_mode == FALSE || cinfo.coef_bits == nullptr) return false;
  for (int c = 0; c < cinfo.num_components; ++c) {
    const int* bits = cinfo.coef_bits[c];
    if (std::any_of(bits, bits + DCTSIZE2, [](int left) { return left != 0; })) return true;
  }
  return false;
}

// A file that ends between two scans lacks some, though each that is there is whole. Arithmetic codes do not
// tell where they end.
bool LacksScans(const jpeg_decompress_struct& cinfo) {
  if (cinfo.arith_code != FALSE) return true;
  if (cinfo.progressive_mode != FALSE) return IsCoarse(cinfo);
  const std::span<const jpeg_component_info> components(cinfo.comp_info,
                                                        static_cast<size_t>(cinfo.num_components));
  return std::ranges::any_of(components, [](const auto& one) { return one.quant_table == nullptr; });
}

size_t LineBytes(const jpeg_decompress_struct& cinfo) {
  return static_cast<size_t>(cinfo.output_width) * cinfo.output_components;
}

void ReadAndDrop(Work& work, JDIMENSION rows) {
  JSAMPROW line = work.scratch->rows.data();
  const JDIMENSION end = work.cinfo.output_scanline + rows;
  while (work.cinfo.output_scanline < end) jpeg_read_scanlines(&work.cinfo, &line, 1);
}

// Reads the next `count` rows into the first of `out`; rows of `cinfo` begin at picture column
// `first_column`.
void ReadRows(Work& work, JDIMENSION first_column, int count) {
  jpeg_decompress_struct& cinfo = work.cinfo;
  const int width = work.given.width;
  Pixels& out = *work.out;
  const size_t line_bytes = LineBytes(cinfo);
  const size_t offset = (work.given.x - first_column) * static_cast<size_t>(cinfo.output_components);
  const bool cmyk = cinfo.out_color_space == JCS_CMYK;
  const bool direct = !cmyk && static_cast<int>(cinfo.output_width) == width;
  for (int row = 0; row < count;) {
    const int wanted = std::min(kRowsAtOnce, count - row);
    JSAMPROW lines[kRowsAtOnce];
    for (int i = 0; i < wanted; ++i) {
      lines[i] = direct ? OutputRow(out, row + i) : work.scratch->rows.data() + i * line_bytes;
    }
    const int got = static_cast<int>(jpeg_read_scanlines(&cinfo, lines, wanted));
    for (int i = 0; i < got && !direct; ++i) {
      if (cmyk) {
        InvertedCmykToRgb(lines[i] + offset, width, OutputRow(out, row + i));
      } else {
        std::memcpy(OutputRow(out, row + i), lines[i] + offset, static_cast<size_t>(width) * out.channels);
      }
    }
    row += got;
  }
}

void ReadWindow(Work& work, JDIMENSION first_column) {
  const Window& given = work.given;
  const int strip = work.take == nullptr ? given.height : kStripRows;
  for (int row = 0; row < given.height; row += strip) {
    const Window where{given.x, given.y + row, given.width, std::min(strip, given.height - row)};
    ReadRows(work, first_column, where.height);
    if (work.take != nullptr) (*work.take)(*work.out, where);
  }
}

// Entropy-decodes to the end marker. Asked to skip to the very bottom, libjpeg-turbo 2.1 would stop reading
// instead, so the last row is left to be read.
void ReadToEnd(Work& work) {
  jpeg_decompress_struct& cinfo = work.cinfo;
  if (jpeg_has_multiple_scans(&cinfo)) return;  // jpeg_start_decompress has read them all
  const JDIMENSION left = cinfo.output_height - cinfo.output_scanline;
  if (left > 1) jpeg_skip_scanlines(&cinfo, left - 1);
  ReadAndDrop(work, std::min<JDIMENSION>(left, 1));
  if (work.errors.strict && !work.own_codes && HasKnownJpegStructures() && HasUnusedBytes(cinfo)) {
    FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged,
             "bytes are left after the last block");
  }
  jpeg_finish_decompress(&cinfo);
}

// Limits the decode to columns [first, end) of the picture.
void WantColumns(Work& work, JDIMENSION first, JDIMENSION end) {
  const int across = work.cinfo.comps_in_scan == 1 ? 1 : work.cinfo.max_h_samp_factor;  // blocks in an MCU
  const auto shrink = static_cast<JDIMENSION>(work.job->shrink);
  const auto pixels = static_cast<JDIMENSION>(across * DCTSIZE);
  work.scratch->huffman->WantColumns(first * shrink / pixels, (end * shrink + pixels - 1) / pixels);
}

void Run(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  jpeg_decompress_struct& cinfo = work.cinfo;
  const Window& window = work.job->window;
  Start(work);

  const bool coarse = IsCoarse(cinfo);
  JDIMENSION first_column = 0;
  if (!coarse) {
    const JDIMENSION margin = cinfo.max_h_samp_factor == 1 ? 0 : kMarginColumns;
    first_column = std::max<JDIMENSION>(window.x, margin) - margin;
    const JDIMENSION end = std::min<JDIMENSION>(window.x + window.width + margin, cinfo.output_width);
    JDIMENSION columns = end - first_column;
    jpeg_crop_scanline(&cinfo, &first_column, &columns);
    if (work.own_codes) WantColumns(work, first_column, first_column + columns);
  }
  work.scratch->rows.resize(kRowsAtOnce * LineBytes(cinfo));
  work.given = window;
  Window held = window;
  if (work.take != nullptr) {
    if (cinfo.out_color_space != JCS_CMYK) {  // all columns that there are, which saves a copy
      work.given.x = static_cast<int>(first_column);
      work.given.width = static_cast<int>(cinfo.output_width);
    }
    held = work.given;
    held.height = kStripRows + 1;
  }
  ShapeOutput(held, cinfo.out_color_space == JCS_GRAYSCALE ? 1 : 3, *work.out);
  if (coarse) {
    ReadAndDrop(work, window.y);
  } else if (window.y > 0) {
    jpeg_skip_scanlines(&cinfo, window.y);
  }
  ReadWindow(work, first_column);
  ReadToEnd(work);
  if (work.errors.strict && work.errors.no_end && LacksScans(cinfo)) {
    FailJpeg(reinterpret_cast<j_common_ptr>(&cinfo), RejectReason::kDamaged,
             "Premature end of JPEG file: scans are missing");
  }
}

// The decoder is made anew for each picture (a few microseconds): a kept one also keeps the tables of the
// last picture, and would decode one that lacks its own with them.
Accepted<void> Decode(const DecodeJob& job, JpegScratch& scratch, const TakeRows* take, Pixels& out) {
  if (!scratch.huffman) scratch.huffman = std::make_shared<JpegHuffman>();
  Work work;
  work.job = &job;
  work.scratch = &scratch;
  work.take = take;
  work.out = &out;
  work.errors.strict = !job.tolerate_damage;
  work.cinfo.err = &work.errors.manager;
  const bool done = Guard(work.errors, Run, &work);
  jpeg_destroy_decompress(&work.cinfo);
  if (!done) return Refuse(work.errors.reason, work.errors.message);
  return {};
}

}  // namespace

Accepted<void> DecodeJpeg(const DecodeJob& job, JpegScratch& scratch, Pixels& out) {
  return Decode(job, scratch, nullptr, out);
}

Accepted<void> DecodeJpegRows(const DecodeJob& job, JpegScratch& scratch, Pixels& rows,
                              const TakeRows& take) {
  return Decode(job, scratch, &take, rows);
}

}  // namespace weir::image
