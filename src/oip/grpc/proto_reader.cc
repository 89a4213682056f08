#include "oip/grpc/proto_reader.h"

namespace weir::oip {

bool ProtoReader::SkipValue(uint32_t tag, int depth) {
  uint64_t value = 0;
  const auto skip = [&](uint64_t size) {
    if (size > left_) return false;
    Skip(size);
    return true;
  };
  switch (static_cast<WireType>(tag & 7)) {
    case WireType::kVarint:
      return ReadVarint(value);
    case WireType::kFixed64:
      return skip(8);
    case WireType::kFixed32:
      return skip(4);
    case WireType::kLength:
      return ReadVarint(value, kShort) && value <= INT32_MAX && skip(value);
    case WireType::kGroup: {
      const uint32_t end = Tag(tag >> 3, WireType::kEndGroup);
      for (uint32_t inner = 0; depth > 0 && ReadTag(inner);) {
        if (inner == end) return true;
        if (!SkipValue(inner, depth - 1)) return false;
      }
      return false;
    }
    case WireType::kEndGroup:
      break;
  }
  return false;
}

Bytes ProtoReader::Take(size_t alignment) const {
  if (left_ == 0) return {};
  ProtoReader reader = *this;
  if (reader.Here() == left_ && reinterpret_cast<uintptr_t>(reader.next_) % alignment == 0) {
    return reader.piece_->Slice(static_cast<size_t>(reader.next_ - reader.piece_->data()), left_);
  }
  Bytes whole = Bytes::AllocateUninitialized(left_);
  reader.Read(whole.mutable_data(), whole.size());
  return whole;
}

}  // namespace weir::oip
