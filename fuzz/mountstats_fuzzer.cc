// Counters of network mounts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "probe/mount_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string& point : weir::probe::NfsMountPoints(text)) {
    CHECK(text.find(point) != std::string_view::npos);
    static_cast<void>(weir::probe::ServerReadBytes(text, point));
  }
  return 0;
}
