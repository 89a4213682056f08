// Headers of numpy's files: any bytes end in a header whose records fit, or in an error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "dataset/source.h"
#include "feed/array_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto header = weir::feed::ParseArrayHeader(std::as_bytes(std::span(data, size)));
  if (!header) return 0;
  CHECK(header->records >= 0 && header->begin <= size);
  CHECK(header->form.bytes >= 1 && header->form.bytes <= weir::dataset::kMaxFileBytes);
  return 0;
}
