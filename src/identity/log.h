// The records of the log of enrolments and deletions, each with a checksum that also covers its place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::identity {

struct LogRecord {
  enum class Kind : uint8_t { kEnrol = 1, kDelete = 2 };
  Kind kind = Kind::kEnrol;
  std::string name;
  std::vector<float> vector;  // empty for kDelete
  bool operator==(const LogRecord&) const = default;
};

struct LogContents {
  std::vector<LogRecord> records;
  uint64_t whole_bytes = 0;  // up to the end of the last whole record
  uint64_t torn_bytes = 0;   // after them: a record that a kill or a power cut left unfinished
};

// Returns the bytes of the record at place `index`, from 0, of a log.
std::string FormatLogRecord(const LogRecord& record, uint64_t index);

// Parses a log of vectors of `dimension`. kCorrupt for a record that is whole in length and has a wrong
// checksum, place or size; only a last record that is cut short, or zero bytes to the end, count as torn.
Result<LogContents> ParseLog(std::span<const std::byte> bytes, size_t dimension);

}  // namespace weir::identity
