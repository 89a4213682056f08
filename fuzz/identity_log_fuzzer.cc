// Any bytes as a log of enrolments: read without a crash, and its whole records are written as the same
// bytes.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "identity/log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::identity;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto contents = ParseLog(bytes, 2, 1);
  if (!contents) return 0;
  CHECK(contents->whole_bytes + contents->torn_bytes == size);
  std::string text;
  for (size_t i = 0; i < contents->records.size(); ++i) text += FormatLogRecord(contents->records[i], 1, i);
  CHECK(text.size() == contents->whole_bytes && std::memcmp(text.data(), data, text.size()) == 0);
  return 0;
}
