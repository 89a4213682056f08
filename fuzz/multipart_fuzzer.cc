// An MJPEG stream over HTTP, in pieces.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "watch/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  weir::watch::MultipartReader reader({.max_head = 512, .max_part = 4096});
  const size_t step = size > 0 ? 1 + data[0] % 64 : 1;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Add(bytes.substr(at, step));
    while (true) {
      const auto part = reader.Next();
      if (!part) return 0;
      if (!*part) break;
      if ((*part)->data.size() > bytes.size()) __builtin_trap();
    }
  }
  return 0;
}
