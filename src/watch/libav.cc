#include "watch/libav.h"

#ifdef WEIR_HAS_LIBAV
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdarg>
#include <string_view>

namespace weir::watch {
namespace {

// The library tells of missing packets of RTP in its log alone.
void TakeLog(void* about, int, const char* format, va_list values) {
  if (about == nullptr || std::string_view(format) != "RTP: missed %d packets\n") return;
  const AVClass* const kind = *static_cast<const AVClass* const*>(about);
  if (kind == nullptr || std::string_view(kind->class_name) != "AVFormatContext") return;
  auto* const losses = static_cast<LibavLosses*>(static_cast<AVFormatContext*>(about)->opaque);
  va_list copy;
  va_copy(copy, values);
  const int missed = va_arg(copy, int);
  va_end(copy);
  if (losses != nullptr && missed > 0) losses->packets += missed;
}

Result<Libav> Open() {
  const auto open = [](const char* name, unsigned major) -> Result<void*> {
    const std::string file = fmt::format("lib{}.so.{}", name, major);
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{} is not on this machine: files and RTSP need FFmpeg 5.1's libraries (apt-get install "
                    "libavformat59 libavcodec59 libswscale6)",
                    file));
  };
  Libav av;
  void* const util = TRY(open("avutil", LIBAVUTIL_VERSION_MAJOR));
  void* const codec = TRY(open("avcodec", LIBAVCODEC_VERSION_MAJOR));
  void* const format = TRY(open("avformat", LIBAVFORMAT_VERSION_MAJOR));
  void* const scale = TRY(open("swscale", LIBSWSCALE_VERSION_MAJOR));
#define WEIR_FIND(library, name)                                        \
  av.name = reinterpret_cast<decltype(av.name)>(dlsym(library, #name)); \
  if (av.name == nullptr) return Fail(ErrorCode::kUnsupported, "libav has no function " #name);
  WEIR_LIBAV_FUNCTIONS(WEIR_FIND)
#undef WEIR_FIND
  if (av.avformat_version() >> 16 != LIBAVFORMAT_VERSION_MAJOR ||
      av.avcodec_version() >> 16 != LIBAVCODEC_VERSION_MAJOR)
    return Fail(ErrorCode::kUnsupported, "libav's libraries are of another version than their names say");
  av.av_log_set_level(AV_LOG_WARNING);
  av.av_log_set_callback(&TakeLog);
  return av;
}

}  // namespace

std::string Libav::Words(int error) const {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(error, text, sizeof text);
  return text;
}

const Result<Libav>& TheLibav() {
  static const Result<Libav> av = Open();
  return av;
}

}  // namespace weir::watch

#endif
