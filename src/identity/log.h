// The log of enrolments: records that each have a checksum, which also covers their place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::identity {

// One vector of one name, as the user gave it.
struct Enrolment {
  std::string name;
  std::vector<float> vector;
  bool operator==(const Enrolment&) const = default;
};

struct LogContents {
  std::vector<Enrolment> records;
  uint64_t whole_bytes = 0;  // up to the end of the last whole record
  uint64_t torn_bytes = 0;   // after them: a record that a kill or a power cut left unfinished
};

// Returns the bytes of the record at place `index`, from 0, of the log number `log`.
std::string FormatLogRecord(const Enrolment& record, uint64_t log, uint64_t index);

// Parses records of log `log` from place `first` on; vectors have `dimension` values. kCorrupt for a record
// that is whole in length and has a wrong checksum, place or size. Only a last record that is cut short, or
// zero bytes to the end, count as torn.
Result<LogContents> ParseLog(std::span<const std::byte> bytes, size_t dimension, uint64_t log,
                             uint64_t first = 0);

}  // namespace weir::identity
