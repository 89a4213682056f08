#include "identity/log.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "identity/code.h"

namespace weir::identity {
namespace {

struct Head {
  uint64_t log;
  uint64_t index;
  uint64_t body_checksum;
  uint32_t name_bytes;
  uint32_t zero;
  uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(Head) == 40);

uint64_t ChecksumOf(const Head& head) { return XXH3_64bits(&head, sizeof(head) - 8); }

}  // namespace

std::string FormatLogRecord(const Enrolment& record, uint64_t log, uint64_t index) {
  std::string body = record.name;
  body.append(reinterpret_cast<const char*>(record.vector.data()), record.vector.size() * sizeof(float));
  Head head{};
  head.log = log;
  head.index = index;
  head.body_checksum = XXH3_64bits(body.data(), body.size());
  head.name_bytes = static_cast<uint32_t>(record.name.size());
  head.checksum = ChecksumOf(head);
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + body;
}

Result<LogContents> ParseLog(std::span<const std::byte> bytes, size_t dimension, uint64_t log,
                             uint64_t first) {
  LogContents contents;
  size_t at = 0;
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("record {} at byte {}: {}: restore the folder from a copy",
                                                 first + contents.records.size(), at, what));
  };
  const uint64_t vector_bytes = dimension * sizeof(float);
  while (at < bytes.size()) {
    const auto rest = bytes.subspan(at);
    Head head;
    if (rest.size() < sizeof(head)) break;
    std::memcpy(&head, rest.data(), sizeof(head));
    if (ChecksumOf(head) != head.checksum) {
      // A power cut can leave the new length of a file without its data.
      if (std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; })) break;
      return corrupt("the checksum of its head is wrong");
    }
    if (head.log != log || head.index != first + contents.records.size())
      return corrupt("it belongs to another place");
    if (head.name_bytes == 0 || head.name_bytes > kMaxName) return corrupt("its name has no valid length");
    const uint64_t body_bytes = head.name_bytes + vector_bytes;
    if (rest.size() - sizeof(head) < body_bytes) break;
    const auto body = rest.subspan(sizeof(head), body_bytes);
    if (XXH3_64bits(body.data(), body.size()) != head.body_checksum) return corrupt("its checksum is wrong");
    Enrolment record;
    record.name.assign(reinterpret_cast<const char*>(body.data()), head.name_bytes);
    record.vector.resize(dimension);
    std::memcpy(record.vector.data(), body.data() + head.name_bytes, vector_bytes);
    contents.records.push_back(std::move(record));
    at += sizeof(head) + body_bytes;
  }
  contents.whole_bytes = at;
  contents.torn_bytes = bytes.size() - at;
  return contents;
}

}  // namespace weir::identity
