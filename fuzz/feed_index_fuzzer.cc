#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "feed/file_index.h"

// Every name of an index that is accepted lies inside of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> aligned(size / 8 + 1);
  std::memcpy(aligned.data(), data, size);
  const auto parts = weir::feed::ParseIndex({reinterpret_cast<const std::byte*>(aligned.data()), size});
  if (!parts) return 0;
  size_t bytes = 0;
  for (const auto& entry : parts->entries)
    bytes += parts->names.substr(entry.name_begin, entry.name_bytes).size();
  CHECK(bytes <= parts->entries.size() * parts->names.size());
  return 0;
}
