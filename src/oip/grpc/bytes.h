// Messages of the gRPC library as our bytes and back, without a copy of what is large. Its headers are heavy:
// only for the files that speak gRPC.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "oip/grpc/codec.h"

namespace weir::oip {

// Below this a copy costs less than keeping the memory alive.
inline constexpr size_t kWorthSharing = 1024;

inline grpc::Slice ToGrpc(const Bytes& piece) {
  if (piece.size() < kWorthSharing) return {piece.data(), piece.size()};
  auto* const owner = new Bytes(piece);
  return {owner->mutable_data(), owner->size(), [](void* bytes) { delete static_cast<Bytes*>(bytes); },
          owner};
}

// The pieces' memory lives until the library has sent them.
inline grpc::ByteBuffer ToGrpc(const Slices& pieces) {
  std::vector<grpc::Slice> slices;
  slices.reserve(pieces.size());
  for (const Bytes& piece : pieces) slices.push_back(ToGrpc(piece));
  return {slices.data(), slices.size()};
}

// Slices of the message, which they keep alive.
inline Slices FromGrpc(const grpc::ByteBuffer& message) {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  Slices pieces;
  if (!message.Valid() || !message.Dump(slices.get()).ok()) return pieces;
  pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    auto* const data = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(slice.begin()));
    pieces.push_back(Bytes::Wrap(slices, data, slice.size()));
  }
  return pieces;
}

}  // namespace weir::oip
