#include "base/bytes.h"

#include <cstring>
#include <new>

namespace weir {
namespace {
constexpr std::align_val_t kAlignment{64};
}

Bytes Bytes::AllocateUninitialized(size_t size) {
  Bytes bytes;
  if (size == 0) return bytes;
  auto* memory = static_cast<std::byte*>(::operator new(size, kAlignment));
  bytes.owner_ = std::shared_ptr<const void>(
      memory, [](const void* p) { ::operator delete(const_cast<void*>(p), kAlignment); });
  bytes.data_ = memory;
  bytes.size_ = size;
  return bytes;
}

Bytes Bytes::Allocate(size_t size) {
  Bytes bytes = AllocateUninitialized(size);
  if (size > 0) std::memset(bytes.data_, 0, size);
  return bytes;
}

Bytes Bytes::Copy(std::span<const std::byte> data) {
  Bytes bytes = AllocateUninitialized(data.size());
  if (!data.empty()) std::memcpy(bytes.data_, data.data(), data.size());
  return bytes;
}

Bytes Bytes::Copy(std::string_view text) { return Copy(std::as_bytes(std::span(text.data(), text.size()))); }

Bytes Bytes::Wrap(std::shared_ptr<const void> owner, std::byte* data, size_t size) {
  Bytes bytes;
  bytes.owner_ = std::move(owner);
  bytes.data_ = data;
  bytes.size_ = size;
  return bytes;
}

Bytes Bytes::Slice(size_t offset, size_t size) const {
  CHECK(offset <= size_ && size <= size_ - offset);
  Bytes part = *this;
  part.data_ += offset;
  part.size_ = size;
  return part;
}

}  // namespace weir
