// A tar archive of unknown origin: every member it tells of lies inside of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "dataset/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string archive(reinterpret_cast<const char*>(data), size);
  const auto bytes = static_cast<int64_t>(size);
  const dataset::TarRead read = [&](int64_t offset, int64_t wanted) -> Result<std::string> {
    CHECK(offset >= 0 && wanted >= 0);
    if (offset >= bytes) return std::string();
    return archive.substr(static_cast<size_t>(offset), static_cast<size_t>(wanted));
  };
  int64_t before = 0;
  const Status status = dataset::ScanTar(read, bytes, [&](const dataset::TarMember& member) -> Status {
    CHECK(member.offset > before && member.size >= 0 && member.size <= bytes - member.offset);
    before = member.offset;
    return {};
  });
  if (!status) CHECK(!status.error().message.empty());
  return 0;
}
