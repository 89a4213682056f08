// Any bytes as a journal: read without a crash, and what is whole stays whole.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "record/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weir::record::ParseJournal;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto contents = ParseJournal(text);
  if (!contents) return 0;
  CHECK(contents->whole_bytes + contents->torn_bytes == size);
  // The repaired file opens with the same entries and nothing torn.
  const auto repaired = ParseJournal(text.substr(0, contents->whole_bytes));
  CHECK(repaired.has_value());
  CHECK(repaired->torn_bytes == 0);
  CHECK(repaired->entries == contents->entries);
  // Cut one byte short it loses its last line and no other.
  if (contents->whole_bytes > 0 && contents->entries.size() > 1) {
    const auto cut = ParseJournal(text.substr(0, contents->whole_bytes - 1));
    CHECK(cut.has_value());
    CHECK(cut->entries.size() + 1 == contents->entries.size());
  }
  return 0;
}
