#include "identity/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dataset/hash.h"
#include "identity/segment.h"

namespace weir::identity {
namespace {

struct Head {
  uint32_t body_bytes;
  uint32_t body_checksum;
  uint64_t index;
  uint32_t name_bytes;
  uint32_t kind;
  uint32_t zero;
  uint32_t checksum;  // of the bytes before it
};
static_assert(sizeof(Head) == 32);

std::span<const std::byte> BytesOf(const Head& head) { return std::as_bytes(std::span(&head, 1)); }

}  // namespace

std::string FormatLogRecord(const LogRecord& record, uint64_t index) {
  std::string body = record.name;
  body.append(reinterpret_cast<const char*>(record.vector.data()), record.vector.size() * sizeof(float));
  Head head{};
  head.body_bytes = static_cast<uint32_t>(body.size());
  head.body_checksum = dataset::Crc32c(std::as_bytes(std::span(body)));
  head.index = index;
  head.name_bytes = static_cast<uint32_t>(record.name.size());
  head.kind = static_cast<uint32_t>(record.kind);
  head.checksum = dataset::Crc32c(BytesOf(head).first(sizeof(head) - 4));
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + body;
}

Result<LogContents> ParseLog(std::span<const std::byte> bytes, size_t dimension) {
  LogContents contents;
  size_t at = 0;
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("record {} at byte {}: {}: restore the folder from a copy",
                                                 contents.records.size(), at, what));
  };
  while (at < bytes.size()) {
    const auto rest = bytes.subspan(at);
    Head head;
    if (rest.size() < sizeof(head)) break;
    if (std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; })) break;
    std::memcpy(&head, rest.data(), sizeof(head));
    if (dataset::Crc32c(BytesOf(head).first(sizeof(head) - 4)) != head.checksum)
      return corrupt("the checksum of its head is wrong");
    if (head.index != contents.records.size()) return corrupt("it belongs to another place");
    const bool enrols = head.kind == static_cast<uint32_t>(LogRecord::Kind::kEnrol);
    if (!enrols && head.kind != static_cast<uint32_t>(LogRecord::Kind::kDelete))
      return corrupt("its kind is not known");
    const uint64_t vector_bytes = enrols ? dimension * sizeof(float) : 0;
    if (head.name_bytes == 0 || head.name_bytes > kMaxName ||
        head.body_bytes != head.name_bytes + vector_bytes)
      return corrupt("its sizes do not fit the index");
    if (rest.size() - sizeof(head) < head.body_bytes) break;
    const auto body = rest.subspan(sizeof(head), head.body_bytes);
    if (dataset::Crc32c(body) != head.body_checksum) return corrupt("its checksum is wrong");
    LogRecord record;
    record.kind = static_cast<LogRecord::Kind>(head.kind);
    record.name.assign(reinterpret_cast<const char*>(body.data()), head.name_bytes);
    record.vector.resize(vector_bytes / sizeof(float));
    if (enrols) std::memcpy(record.vector.data(), body.data() + head.name_bytes, vector_bytes);
    contents.records.push_back(std::move(record));
    at += sizeof(head) + head.body_bytes;
  }
  contents.whole_bytes = at;
  contents.torn_bytes = bytes.size() - at;
  return contents;
}

}  // namespace weir::identity
