// A line of a CSV file of labels, and a line of a list of rejects.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/set_text.h"
#include "prepare/labels.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto fields = prepare::SplitCsv(text)) {
    CHECK(!fields->empty());
    size_t bytes = 0;
    for (const std::string& field : *fields) bytes += field.size();
    CHECK(bytes + fields->size() - 1 <= size || size == 0);
  }
  if (const auto entry = data::ParseRejectEntry(text)) {
    const std::string again = data::FormatRejectEntry(*entry);
    CHECK(data::FormatRejectEntry(data::ParseRejectEntry(again).value()) == again);
  }
  return 0;
}
