// A reference-counted slice of memory, so that a payload goes from hand to hand without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir {

// A value: copying shares the memory. Threads: the count is atomic; the contents are the holders' affair
// (in this program the one who fills a slice hands it on and does not write again).
class Bytes {
 public:
  Bytes() = default;

  // `size` bytes, zeroed, aligned to 64. Aborts when memory is out; callers check sizes against limits first.
  static Bytes Allocate(size_t size);
  // The same without touching the memory: every byte is the caller's to write before it is read.
  static Bytes AllocateUninitialized(size_t size);
  static Bytes Copy(std::span<const std::byte> data);
  static Bytes Copy(std::string_view text);
  // Memory of somebody else; `owner` keeps it alive.
  static Bytes Wrap(std::shared_ptr<const void> owner, std::byte* data, size_t size);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return data_; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  std::span<std::byte> mutable_span() { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  // A part that shares the memory. REQUIRES: offset + size <= this->size().
  Bytes Slice(size_t offset, size_t size) const;

 private:
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weir
