// The texts of a prepared set: set.json, or a line of its manifest. What was accepted comes back from its own
// text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "dataset/set_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<dataset::SetFacts> facts = dataset::ParseSetFacts(text)) {
    const std::string again = dataset::FormatSetFacts(*facts);
    CHECK(dataset::FormatSetFacts(dataset::ParseSetFacts(again).value()) == again);
  }
  if (const Result<dataset::SetEntry> entry = dataset::ParseSetEntry(text)) {
    const std::string again = dataset::FormatSetEntry(*entry);
    CHECK(dataset::FormatSetEntry(dataset::ParseSetEntry(again).value()) == again);
  }
  return 0;
}
