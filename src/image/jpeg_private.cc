#include "image/jpeg_private.h"

#include <cstdlib>
#include <memory>

#include "base/error.h"

#if WEIR_JPEG_PRIVATE
#include <dlfcn.h>
#include <jpegint.h>
#endif

namespace weir::image {

#if WEIR_JPEG_PRIVATE

namespace {

// Returns whether all addresses lie in the file that libjpeg's public functions are in.
template <typename... Functions>
bool AreLibjpegs(Functions... functions) {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&jpeg_read_header), &library) == 0) return false;
  const auto is_there = [&](void* address) {
    Dl_info info{};
    return address != nullptr && dladdr(address, &info) != 0 && info.dli_fbase == library.dli_fbase;
  };
  return (is_there(reinterpret_cast<void*>(functions)) && ...);
}

struct Trial {
  JpegErrors errors;
  jpeg_compress_struct writer{};
  jpeg_decompress_struct reader{};
  unsigned char* file = nullptr;
  unsigned long size = 0;
  bool known = false;

  ~Trial() {
    jpeg_destroy_compress(&writer);
    jpeg_destroy_decompress(&reader);
    std::free(file);
  }
};

void Write(Trial& trial) {
  jpeg_compress_struct& cinfo = trial.writer;
  jpeg_create_compress(&cinfo);
  jpeg_mem_dest(&cinfo, &trial.file, &trial.size);
  cinfo.image_width = 16;
  cinfo.image_height = 8;
  cinfo.input_components = 1;
  cinfo.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  JSAMPLE row[16] = {};
  JSAMPROW rows = row;
  while (cinfo.next_scanline < cinfo.image_height) jpeg_write_scanlines(&cinfo, &rows, 1);
  jpeg_finish_compress(&cinfo);
}

void LookAt(void* argument) {
  Trial& trial = *static_cast<Trial*>(argument);
  Write(trial);
  jpeg_decompress_struct& cinfo = trial.reader;
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, trial.file, trial.size);
  jpeg_read_header(&cinfo, TRUE);
  jpeg_start_decompress(&cinfo);
  const jpeg_entropy_decoder* entropy = cinfo.entropy;
  const jpeg_marker_reader* marker = cinfo.marker;
  trial.known = entropy != nullptr && marker != nullptr &&
                AreLibjpegs(entropy->start_pass, entropy->decode_mcu, marker->reset_marker_reader,
                            marker->read_markers, marker->read_restart_marker) &&
                marker->saw_SOI == TRUE && marker->saw_SOF == TRUE && marker->discarded_bytes == 0;
}

}  // namespace

bool HasKnownJpegStructures() {
  static const bool known = [] {
    Trial trial;
    trial.writer.err = trial.reader.err = &trial.errors.manager;
    return Guard(trial.errors, LookAt, &trial) && trial.known;
  }();
  return known;
}

void ReplaceEntropyDecoder(jpeg_decompress_struct& cinfo, DecodeMcu decode) {
  cinfo.entropy->decode_mcu = decode;
}

void ReadRestartMarker(jpeg_decompress_struct& cinfo) { (*cinfo.marker->read_restart_marker)(&cinfo); }

// libjpeg warns of the bytes that it has not read, but forgets up to seven that its bit buffer holds, which
// are often all that a damaged stream leaves. Only a restart makes it count them; so it is told of one, and
// stopped there.
bool HasUnusedBytes(jpeg_decompress_struct& cinfo) {
  if (cinfo.arith_code || cinfo.restart_interval != 0) return false;
  cinfo.marker->discarded_bytes = 0;
  cinfo.marker->read_restart_marker = [](j_decompress_ptr) -> boolean { return FALSE; };
  cinfo.restart_interval = 1;
  (*cinfo.entropy->decode_mcu)(&cinfo, nullptr);
  return cinfo.marker->discarded_bytes > 0;
}

#else

bool HasKnownJpegStructures() { return false; }
void ReplaceEntropyDecoder(jpeg_decompress_struct&, DecodeMcu) { CHECK(HasKnownJpegStructures()); }
void ReadRestartMarker(jpeg_decompress_struct&) { CHECK(HasKnownJpegStructures()); }
bool HasUnusedBytes(jpeg_decompress_struct&) { return false; }

#endif

}  // namespace weir::image
