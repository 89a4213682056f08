// libjpeg's longjmp, kept in one place. libjpeg tells of an error by a call that must not return; here it
// jumps back into Guard. Whatever runs inside must therefore hold nothing with a destructor while it calls
// libjpeg.
#pragma once

// clang-format off: each needs the one before it
#include <stdio.h>
#include <jpeglib.h>
// clang-format on

#include <csetjmp>

#include "image/reject.h"

namespace weir::image {

// Point `cinfo.err` at `manager`. Not movable while libjpeg holds that pointer.
struct JpegErrors {
  jpeg_error_mgr manager{};  // first member: libjpeg's pointer to it is a pointer to this
  std::jmp_buf escape{};
  bool strict = true;   // a warning that means wrong data ends the work
  bool no_end = false;  // the file ended before its end marker; whether all scans are there is for the caller
  RejectReason reason = RejectReason::kDamaged;
  char message[JMSG_LENGTH_MAX] = "";

  JpegErrors();
  JpegErrors(const JpegErrors&) = delete;
  JpegErrors& operator=(const JpegErrors&) = delete;
};

// Ends the guarded work in hand as libjpeg itself does.
[[noreturn]] void FailJpeg(j_common_ptr cinfo, RejectReason reason, const char* message);

// True for bytes that a writer, and no damaged scan, leaves before the end marker: up to four, or any number
// of one value (null: not known). What a scan that was damaged leaves is longer, and random.
bool IsStray(const unsigned char* bytes, size_t count);

// Runs `work(argument)`; false when libjpeg or FailJpeg ended it: `reason` and `message` say why.
bool Guard(JpegErrors& errors, void (*work)(void*), void* argument);

}  // namespace weir::image
