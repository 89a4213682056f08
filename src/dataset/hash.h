// Hashes of contents: XXH3-128 everywhere, SHA-256 where somebody else's tools shall check, and the CRC of
// TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace weir::dataset {

// XXH3-128, 32 hex digits.
std::string HashOf(std::span<const std::byte> bytes);

// SHA-256, 64 hex digits.
std::string Sha256Of(std::span<const std::byte> bytes);

// XXH3-128 of what is added, piece by piece. One thread at a time.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(StreamHash&&) noexcept;
  StreamHash& operator=(StreamHash&&) noexcept;

  void Add(std::span<const std::byte> bytes);
  // Returns the hash of all that was added so far, 32 hex digits; more may be added.
  std::string Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Adds the first `bytes` of an open file, piece by piece. `path` is for the message. kIo where it has fewer.
Status AddBytes(const UniqueFd& fd, const std::string& path, int64_t bytes, StreamHash& hash);
// HashOf a whole file, which need not fit into memory. Errors as OpenRegularFile has them, and kIo.
Result<std::string> HashOfFile(const std::string& path);

// CRC-32C (Castagnoli, RFC 3720 B.4) of `bytes` that follow others whose CRC was `crc`.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);
// As TFRecord files store it: rotated and moved, so that a CRC over CRCs is none of itself
// (tensorflow/core/lib/hash/crc32c.h, Mask).
uint32_t MaskCrc32c(uint32_t crc);

}  // namespace weir::dataset
