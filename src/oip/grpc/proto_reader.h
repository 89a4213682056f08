// Protobuf's wire format, read from a message that lies in pieces.
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/bytes.h"

namespace weir::oip {

enum class WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// A field's number and type as they stand on the wire, to switch over.
constexpr uint32_t Tag(uint32_t number, WireType type) { return number << 3 | static_cast<uint32_t>(type); }

// A value: a copy reads on by itself. The pieces must outlive it. What returns false has met the end of the
// message, or what is not the wire format; then the reader is of no more use.
class ProtoReader {
 public:
  explicit ProtoReader(std::span<const Bytes> pieces) : piece_(pieces.data()) {
    for (const Bytes& piece : pieces) left_ += piece.size();
    if (left_ == 0) return;
    next_ = piece_->data();
    end_ = next_ + piece_->size();
  }

  size_t left() const { return left_; }  // bytes to the end of the message
  bool AtEnd() const { return left_ == 0; }

  // The tag of the next field. False for field number 0 and for types that do not exist.
  bool ReadTag(uint32_t& tag) {
    uint64_t value = 0;
    if (!ReadVarint(value, kShort)) return false;
    tag = static_cast<uint32_t>(value);  // protobuf, too, lets go of what is above 32 bits
    return tag >> 3 != 0 && (tag & 7) <= static_cast<uint32_t>(WireType::kFixed32);
  }

  // The longest encoding, in bytes.
  static constexpr int kLong = 10;
  static constexpr int kShort = 5;  // tags and lengths
  bool ReadVarint(uint64_t& value, int most = kLong) {
    value = 0;
    for (int shift = 0; shift < 7 * most; shift += 7) {
      std::byte byte{};
      if (!ReadByte(byte)) return false;
      value |= (static_cast<uint64_t>(byte) & 0x7f) << shift;
      if ((byte & std::byte{0x80}) == std::byte{0}) return true;
    }
    return false;
  }

  // Copies `size` bytes to `to`.
  bool Read(void* to, size_t size) {
    if (size > left_) return false;
    auto* out = static_cast<std::byte*>(to);
    while (size > 0) {
      const size_t here = std::min(size, Here());
      std::memcpy(out, next_, here);
      Advance(here);
      out += here;
      size -= here;
    }
    return true;
  }

  // The bytes of a field that begins with its length, as a message of their own.
  bool ReadMessage(ProtoReader& message) {
    uint64_t size = 0;
    if (!ReadVarint(size, kShort) || size > left_ || size > INT32_MAX) return false;
    message = *this;
    message.left_ = size;
    Skip(size);
    return true;
  }

  // Passes over the value of a field that nobody knows. Groups may lie in one another `depth` deep.
  bool SkipValue(uint32_t tag, int depth = 100);

  // All that is left, as one: a slice of the piece in which it lies whole on a multiple of `alignment`, or
  // else a copy.
  Bytes Take(size_t alignment) const;

 private:
  // Bytes of this message that lie at `next_`. REQUIRES: left_ > 0.
  size_t Here() {
    while (next_ == end_) {
      ++piece_;
      next_ = piece_->data();
      end_ = next_ + piece_->size();
    }
    return std::min(left_, static_cast<size_t>(end_ - next_));
  }
  void Advance(size_t size) {
    next_ += size;
    left_ -= size;
  }
  bool ReadByte(std::byte& byte) {
    if (left_ == 0) return false;
    if (next_ == end_) Here();
    byte = *next_;
    Advance(1);
    return true;
  }
  // REQUIRES: size <= left_.
  void Skip(size_t size) {
    while (size > 0) {
      const size_t here = std::min(size, Here());
      Advance(here);
      size -= here;
    }
  }

  const Bytes* piece_ = nullptr;
  const std::byte* next_ = nullptr;  // in *piece_
  const std::byte* end_ = nullptr;   // of *piece_
  size_t left_ = 0;
};

}  // namespace weir::oip
