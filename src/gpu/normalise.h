// Pixels to a model's input: the arithmetic of the kernel in normalise.cu, which runs on the CPU too.
#pragma once

#include <cstdint>
#include <string>

#ifdef __CUDA__
#define WEIR_ON_DEVICE __attribute__((device))
#else
#define WEIR_ON_DEVICE
#endif

namespace weir::gpu {

// Writes the value of one level: element `at` of `channels` interleaved channels, of pictures with `pixels`
// pixels each. `table` has the 256 values of each channel in turn, so that the values are those of the CPU to
// the last bit. `planar`: channel after channel of a picture, instead of interleaved.
inline WEIR_ON_DEVICE void NormaliseLevel(const unsigned char* levels, const float* table, float* out,
                                          unsigned pixels, unsigned channels, unsigned planar,
                                          unsigned long long at) {
  const unsigned channel = static_cast<unsigned>(at % channels);
  const unsigned long long pixel = at / channels;
  const float value = table[channel * 256 + levels[at]];
  const unsigned long long picture = pixel / pixels;
  const unsigned long long to = planar != 0 ? (picture * channels + channel) * pixels + pixel % pixels : at;
  out[to] = value;
}

inline constexpr char kNormaliseKernel[] = "weir_normalise";

// Returns the kernel as PTX. Its parameters: levels, table, out (addresses), pixels, channels, planar (32
// bits), count (64 bits).
const std::string& NormalisePtx();

}  // namespace weir::gpu
