#include "infer/engines/strings.h"

#include <fmt/format.h>

#include <cstring>

namespace weir::infer {
namespace {

using Length = uint32_t;  // little-endian, as this machine is

}  // namespace

std::string_view TakeString(std::string_view& rest) {
  Length length = 0;
  CHECK(rest.size() >= sizeof length);
  std::memcpy(&length, rest.data(), sizeof length);
  rest.remove_prefix(sizeof length);
  CHECK(rest.size() >= length);
  const std::string_view element = rest.substr(0, length);
  rest.remove_prefix(length);
  return element;
}

Result<size_t> PackedSize(std::string_view what, int64_t count, size_t content) {
  if (count > kMaxStrings) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has {} strings, at most {} are taken: use smaller batches", what, count,
                            kMaxStrings));
  }
  if (content > kMaxStringBytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has strings of {} bytes together, at most {} are taken: use smaller batches",
                            what, content, kMaxStringBytes));
  }
  return static_cast<size_t>(count) * sizeof(Length) + content;
}

void PackStrings(std::span<std::byte> data, std::span<const size_t> offsets) {
  const size_t lengths = offsets.size() * sizeof(Length);
  CHECK(lengths <= data.size());
  const size_t content = data.size() - lengths;
  size_t to = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t end = i + 1 < offsets.size() ? offsets[i + 1] : content;
    CHECK(offsets[i] <= end && end <= content);
    const auto length = static_cast<Length>(end - offsets[i]);
    // The place of an element ends where the next unread one begins, or before it.
    std::memcpy(data.data() + to, &length, sizeof length);
    to += sizeof length;
    if (length > 0) std::memmove(data.data() + to, data.data() + lengths + offsets[i], length);
    to += length;
  }
}

}  // namespace weir::infer
