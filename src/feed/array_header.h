// The header of a numpy file (.npy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "feed/source.h"

namespace weir::feed {

// Records of one form, one after the other from byte `begin` of a file on.
struct ArrayHeader {
  RecordForm form;
  int64_t records = 0;
  size_t begin = 0;  // bytes
};

inline constexpr size_t kMostArrayHeaderBytes = 64 << 10;

// Reads the header of versions 1 to 3 of the format (numpy.lib.format). `head` is the file's beginning: all
// of it, or kMostArrayHeaderBytes. kCorrupt for what is no header; kUnsupported for objects, structures,
// text, an array in Fortran's order, one without a dimension, and records over 256 MiB.
Result<ArrayHeader> ParseArrayHeader(std::span<const std::byte> head);

}  // namespace weir::feed
