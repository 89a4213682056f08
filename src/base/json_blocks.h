// Numbers in JSON as base64 of their little-endian bytes, and a form of such JSON that is quick to read.
#pragma once

#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"

namespace weir {

static_assert(std::endian::native == std::endian::little, "blocks of numbers are kept as they lie in memory");

template <typename T>
std::string EncodeBlock(const std::vector<T>& numbers) {
  return EncodeBase64({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)});
}

// Returns kCorrupt for other texts than base64, and for no whole count of numbers.
template <typename T>
Result<std::vector<T>> DecodeBlock(std::string_view text) {
  const size_t bytes = DecodedBytes(text);
  if (bytes % sizeof(T) != 0) return Fail(ErrorCode::kCorrupt, "a block of numbers is cut off");
  std::vector<T> numbers(bytes / sizeof(T));
  TRY_STATUS(DecodeBase64(text, {reinterpret_cast<char*>(numbers.data()), bytes}));
  return numbers;
}

// JSON of an object whose long blocks stand together at its end, under "blocks", and {"block": N} where they
// belong: a JSON parser looks at every character by itself, which for megabytes of base64 takes longer than a
// prediction. REQUIRES: an object that is not empty and has no key "blocks".
std::string DumpWithBlocks(Json json);
// The same object again; other JSON is read as well, and as it is. kCorrupt as ParseJson, and for a block
// that is not there, or asked for twice.
Result<Json> ParseWithBlocks(std::string_view text);

}  // namespace weir
