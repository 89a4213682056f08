// Pixels to encoded pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/decode.h"

namespace weir::image {

enum class Sampling { k444, k422, k420 };
constexpr std::string_view ToString(Sampling sampling) {
  return sampling == Sampling::k444 ? "444" : sampling == Sampling::k422 ? "422" : "420";
}
struct JpegOptions {
  int quality = 90;  // 1 to 100
  Sampling sampling = Sampling::k420;
  // Uses the Huffman tables of the standard's annex K: larger files, and the same tables for every picture.
  bool standard_tables = false;
  int restart_rows = 0;  // a restart marker after so many rows of blocks; 0: none
};
// A baseline JPEG with optimised Huffman tables unless the options say otherwise; the same bytes for the same
// pixels.
Result<std::string> EncodeJpeg(const Pixels& pixels, const JpegOptions& options);
Result<std::string> EncodePng(const Pixels& pixels);

}  // namespace weir::image
