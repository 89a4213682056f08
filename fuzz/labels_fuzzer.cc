// A record of a CSV file of labels, and a line of a list of rejects.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dataset/set_text.h"
#include "prepare/labels.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  prepare::CsvRecord record;
  auto state = prepare::CsvRecord::State::kOpen;
  for (size_t begin = 0; state == prepare::CsvRecord::State::kOpen && begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    state = record.Add(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (state == prepare::CsvRecord::State::kWhole) {
    CHECK(!record.fields().empty());
    size_t bytes = 0;
    for (const std::string& field : record.fields()) bytes += field.size();
    CHECK(bytes + record.fields().size() - 1 <= size || size == 0);
  }
  if (const auto entry = dataset::ParseRejectEntry(text)) {
    const std::string again = dataset::FormatRejectEntry(*entry);
    CHECK(dataset::FormatRejectEntry(dataset::ParseRejectEntry(again).value()) == again);
  }
  return 0;
}
