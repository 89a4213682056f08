// Loops over pixels, in vector code for whatever processor is there. Every function gives the same values on
// each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::feed {

// Writes `pixels` RGB pixels of `from` in reverse order to `to`. The two may not overlap.
void ReverseRgb(const uint8_t* from, size_t pixels, uint8_t* to);

// Writes each of `pixels` grey levels three times.
void GreyToRgb(const uint8_t* from, size_t pixels, uint8_t* to);

// Writes the luma of RGB pixels as Pillow's convert("L"): ITU-R BT.601-2 in 16-bit fixed point.
void Luma(const uint8_t* rgb, size_t pixels, uint8_t* grey);

// Blends values with one level, as Pillow's Image.blend(level, value, factor): level + factor * (value -
// level) in single precision, cut to 0 to 255, the fraction dropped.
void BlendLevel(uint8_t* values, size_t count, int level, float factor);

// The same of RGB pixels with the grey level of each.
void BlendGrey(uint8_t* rgb, const uint8_t* grey, size_t pixels, float factor);

// Turns the hue of RGB pixels by `shift` of 256 steps, through Pillow's convert("HSV") and back.
void ShiftHue(uint8_t* rgb, size_t pixels, uint8_t shift);

// (value / 255 - mean) / std, each step rounded to single precision, as torchvision's ToTensor and Normalize.
struct Normalisation {
  std::array<float, 3> mean{}, std{1, 1, 1};
};
// Writes RGB pixels as float32 or float16: planes[c] is the first value of channel c, `step` values from one
// pixel to the next (1 for NCHW, 3 for NHWC).
void ToFloat32(const uint8_t* rgb, size_t pixels, const Normalisation& by, std::array<float*, 3> planes,
               size_t step);
// float16 as its bits, rounded to even.
void ToFloat16(const uint8_t* rgb, size_t pixels, const Normalisation& by, std::array<uint16_t*, 3> planes,
               size_t step);

// Splits RGB pixels into three planes of uint8.
void ToPlanes(const uint8_t* rgb, size_t pixels, std::array<uint8_t*, 3> planes);

}  // namespace weir::feed
