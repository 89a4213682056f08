// Memory that grows while it is written, and is then handed on whole.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace weir::oip {

class Buffer {
 public:
  // Room for `expected` bytes is taken at once: more of them costs a copy, fewer nothing but address space.
  explicit Buffer(size_t expected) : memory_(Bytes::AllocateUninitialized(expected)) {}

  size_t size() const { return size_; }

  // Where the next `size` bytes may be written; Advance() then makes those written a part of it.
  char* Room(size_t size) {
    if (memory_.size() - size_ < size) Grow(size);
    return reinterpret_cast<char*>(memory_.mutable_data()) + size_;
  }
  void Advance(size_t size) { size_ += size; }
  void AdvanceTo(const char* end) {
    size_ = static_cast<size_t>(end - reinterpret_cast<const char*>(memory_.data()));
  }

  void Append(std::string_view text) {
    char* const to = Room(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    Advance(text.size());
  }
  void Append(char c) {
    *Room(1) = c;
    Advance(1);
  }

  Bytes Take() && { return std::exchange(memory_, {}).Slice(0, std::exchange(size_, 0)); }

 private:
  void Grow(size_t size) {
    Bytes larger = Bytes::AllocateUninitialized(std::max(size_ + size, 2 * memory_.size()));
    if (size_ > 0) std::memcpy(larger.mutable_data(), memory_.data(), size_);
    memory_ = std::move(larger);
  }

  Bytes memory_;
  size_t size_ = 0;
};

}  // namespace weir::oip
