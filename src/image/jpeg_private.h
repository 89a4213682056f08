// libjpeg's private structures (jpegint.h), reached in one place, and only if the library that runs has them
// as the headers of this build say. Without them libjpeg decodes all by itself.
#pragma once

#include "image/jpeg_guard.h"

namespace weir::image {

// Returns whether the private structures can be used: this build wants them (WEIR_JPEG_PRIVATE), and a small
// picture, decoded once by the library that runs, shows them where they are expected. The first call takes
// some 50 us; later ones return its result. Any thread.
bool HasKnownJpegStructures();

using DecodeMcu = boolean (*)(j_decompress_ptr cinfo, JBLOCKROW* blocks);

// REQUIRES for all: HasKnownJpegStructures(), and jpeg_start_decompress has returned.
// Puts `decode` in the place of the picture's entropy decoder.
void ReplaceEntropyDecoder(jpeg_decompress_struct& cinfo, DecodeMcu decode);
void ReadRestartMarker(jpeg_decompress_struct& cinfo);
// Returns whether bytes of the scan are left that no block has used. Ends the decoding of the scan.
bool HasUnusedBytes(jpeg_decompress_struct& cinfo);

}  // namespace weir::image
