// Made pictures: classes differ in colours and texture, each picture a pure function of a seed and its
// number.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/seed.h"
#include "image/decode.h"

namespace weir::synth {

// Labels run from 0 to ClassCount() - 1. "red and cyan stripes".
int ClassCount();
std::string ClassName(int label);  // REQUIRES: 0 <= label < ClassCount()

struct MadePicture {
  std::string name;  // of the file: "000017.jpg"
  std::string jpeg;
  int label = 0;
};

// The name and the label of picture `index`, which do not depend on the seed.
std::string PictureName(int64_t index);
int PictureLabel(int64_t index);

// Picture `index` (0 or more) of the endless row that `seed` stands for. The same bytes on every call, thread
// and worker; thread-safe. Classes follow one another, so any run of ClassCount() pictures has each once.
// Pattern, angle, scale, light, size (mostly 500x375 and 375x500) and noise are drawn by chance; the noise
// has the spectrum and the JPEG the quality and bytes per pixel of a photo, so that decoding costs what a
// photo costs.
Result<MadePicture> DrawPicture(Seed seed, int64_t index);

// The same before it is encoded.
image::Pixels DrawPixels(Seed seed, int64_t index);

}  // namespace weir::synth
