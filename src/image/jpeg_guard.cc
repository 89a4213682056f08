#include "image/jpeg_guard.h"

#include <jerror.h>

#include <algorithm>

namespace weir::image {
namespace {

JpegErrors& ErrorsOf(j_common_ptr cinfo) { return *reinterpret_cast<JpegErrors*>(cinfo->err); }

RejectReason ReasonOf(int code) {
  switch (code) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
      return RejectReason::kUnsupported;
    case JERR_NO_BACKING_STORE:
    case JERR_OUT_OF_MEMORY:
      return RejectReason::kTooManyPixels;
    default:
      return RejectReason::kDamaged;
  }
}

// Odd headers that leave the pixels right: a JFIF version not known, and spectral bounds in the scan header
// of a sequential picture, which no decoder uses.
bool IsHarmless(int code) { return code == JWRN_JFIF_MAJOR || code == JWRN_NOT_SEQUENTIAL; }

// Bytes that belong to nothing, before the first scan or the end marker: outside of the scans' data.
bool IsOutsideOfScans(j_common_ptr cinfo) {
  if (cinfo->err->msg_code != JWRN_EXTRANEOUS_DATA || cinfo->is_decompressor == FALSE) return false;
  const auto& picture = *reinterpret_cast<j_decompress_ptr>(cinfo);
  if (picture.input_scan_number == 0) return true;
  const auto count = static_cast<size_t>(cinfo->err->msg_parm.i[0]);
  if (cinfo->err->msg_parm.i[1] != JPEG_EOI) return false;
  // The source stands at the marker, and the bytes before it are in memory, unless the marker is made up.
  const unsigned char* end = picture.src->next_input_byte;
  return ErrorsOf(cinfo).no_end ? IsStray(nullptr, count) : IsStray(end - count, count);
}

[[noreturn]] void Escape(j_common_ptr cinfo, RejectReason reason) {
  JpegErrors& errors = ErrorsOf(cinfo);
  errors.reason = reason;
  (*errors.manager.format_message)(cinfo, errors.message);
  std::longjmp(errors.escape, 1);
}

void OnError(j_common_ptr cinfo) {
  const int code = cinfo->err->msg_code;
  if (code == JERR_NO_BACKING_STORE || code == JERR_OUT_OF_MEMORY) {
    FailJpeg(cinfo, RejectReason::kTooManyPixels, "its coefficients need more memory than is allowed");
  }
  Escape(cinfo, ReasonOf(code));
}

// Levels from 0 on are traces; -1 is a warning.
void OnMessage(j_common_ptr cinfo, int level) {
  if (level >= 0 || IsHarmless(cinfo->err->msg_code) || IsOutsideOfScans(cinfo)) return;
  if (cinfo->err->msg_code == JWRN_JPEG_EOF) {
    // Bits that a scan lacks are another warning's.
    ErrorsOf(cinfo).no_end = true;
    return;
  }
  ++cinfo->err->num_warnings;
  if (ErrorsOf(cinfo).strict) Escape(cinfo, RejectReason::kDamaged);
}

}  // namespace

JpegErrors::JpegErrors() {
  jpeg_std_error(&manager);
  manager.error_exit = OnError;
  manager.emit_message = OnMessage;
  manager.output_message = [](j_common_ptr) {};
}

bool IsStray(const unsigned char* bytes, size_t count) {
  constexpr size_t kFew = 4;
  if (count <= kFew) return true;
  return bytes != nullptr &&
         std::all_of(bytes, bytes + count, [&](unsigned char b) { return b == bytes[0]; });
}

void FailJpeg(j_common_ptr cinfo, RejectReason reason, const char* message) {
  JpegErrors& errors = ErrorsOf(cinfo);
  errors.reason = reason;
  std::snprintf(errors.message, sizeof errors.message, "%s", message);
  std::longjmp(errors.escape, 1);
}

bool Guard(JpegErrors& errors, void (*work)(void*), void* argument) {
  if (setjmp(errors.escape) != 0) return false;
  work(argument);
  return true;
}

}  // namespace weir::image
