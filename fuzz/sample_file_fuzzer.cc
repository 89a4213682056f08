// Any bytes as a file of samples: read or refused, and what is read can be reckoned with.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "load/validate/sample_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
  auto reader = load::SampleReader::OpenBytes(Bytes::Copy(std::as_bytes(std::span(data, size))));
  if (!reader) {
    CHECK(!reader.error().message.empty());
    return 0;
  }
  CHECK(reader->about().is_object());
  std::array<load::SampleRecord, 3> records;
  uint64_t read = 0;
  for (;;) {
    const auto count = reader->Next(records);
    if (!count) {
      CHECK(count.error().code == ErrorCode::kCorrupt);
      return 0;
    }
    for (const load::SampleRecord& record : std::span(records).first(*count)) {
      CHECK(record.sample.service() >= Duration{});
      CHECK(record.sample.response() - record.sample.slip() == record.sample.service());
      CHECK(!load::ToString(record.sample.outcome).empty());
      CHECK(record.level >= 0 && record.repeat >= 0);
    }
    read += *count;
    if (*count < records.size()) break;
  }
  CHECK(read == reader->records());
  return 0;
}
