// The texts of a prepared set: set.json, or a line of its manifest. What was accepted comes back from its own
// text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/set_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<data::SetFacts> facts = data::ParseSetFacts(text)) {
    const std::string again = data::FormatSetFacts(*facts);
    CHECK(data::FormatSetFacts(data::ParseSetFacts(again).value()) == again);
  }
  if (const Result<data::SetEntry> entry = data::ParseSetEntry(text)) {
    const std::string again = data::FormatSetEntry(*entry);
    CHECK(data::FormatSetEntry(data::ParseSetEntry(again).value()) == again);
  }
  return 0;
}
