// Any text as a manifest of an index, as embeddings in JSON lines, and as the head of a NumPy file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "identity/fetch.h"
#include "identity/manifest.h"
#include "identity/vectors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::identity;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto manifest = ParseManifest(text)) {
    const auto again = ParseManifest(FormatManifest(*manifest));
    CHECK(again.has_value() && *again == *manifest);
  }
  if (const auto rows = ParseVectorLines(text)) {
    for (const Enrolment& row : *rows) CHECK(row.vector.size() <= 16384);
  }
  if (const auto header = ParseNpyHeader(text)) CHECK(header->data_offset <= size && header->columns >= 2);
  static_cast<void>(ParseDelay(text));
  return 0;
}
