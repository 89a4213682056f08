// Numbers in JSON as base64 of their little-endian bytes.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "predict/base64.h"

namespace weir::predict {

static_assert(std::endian::native == std::endian::little, "blocks of numbers are kept as they lie in memory");

template <typename T>
std::string EncodeBlock(const std::vector<T>& numbers) {
  return EncodeBase64({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)});
}

// kCorrupt for what is not base64, or no whole count of numbers.
template <typename T>
Result<std::vector<T>> DecodeBlock(std::string_view text) {
  const std::string bytes = TRY(DecodeBase64(text));
  if (bytes.size() % sizeof(T) != 0) return Fail(ErrorCode::kCorrupt, "a block of numbers is cut off");
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

}  // namespace weir::predict
