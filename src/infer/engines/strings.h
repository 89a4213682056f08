// Strings between the protocol's form, in which each has its length before it, and that of engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "infer/tensor.h"

namespace weir::infer {

// Limits of one tensor of strings. An engine keeps each string as an object of its own, which takes many
// times the four bytes that an empty one has in a request.
inline constexpr int64_t kMaxStrings = int64_t{1} << 22;
inline constexpr size_t kMaxStringBytes = size_t{1} << 30;

// Returns the element at the front of `rest` and takes it off. REQUIRES: `rest` holds a whole element.
std::string_view TakeString(std::string_view& rest);

// Returns the bytes that `count` strings of `content` bytes together take in the protocol's form.
// `what` names the tensor in the error; kInvalidArgument if a limit above is passed.
Result<size_t> PackedSize(std::string_view what, int64_t count, size_t content);

// Puts the length of each string before it, in place. The strings lie at the end of `data`, one behind the
// other; `offsets` says where each begins, counted from the first. REQUIRES: data.size() is the PackedSize.
void PackStrings(std::span<std::byte> data, std::span<const size_t> offsets);

}  // namespace weir::infer
