#include "dataset/hash.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "dataset/file_at.h"

namespace weir::dataset {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes of a file that are held at once

std::string Hex(const XXH128_hash_t& hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

// tables[k][b]: what byte b does to the CRC when k bytes follow it ("slicing by 8", Kounavis and Berry 2005).
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (uint32_t b = 0; b < 256; ++b) {
    for (size_t k = 1; k < 8; ++k) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

}  // namespace

std::string HashOf(std::span<const std::byte> bytes) { return Hex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string Sha256Of(std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

struct StreamHash::State {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> xxh{XXH3_createState(), XXH3_freeState};
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh.get()); }
StreamHash::~StreamHash() = default;
StreamHash::StreamHash(StreamHash&&) noexcept = default;
StreamHash& StreamHash::operator=(StreamHash&&) noexcept = default;

void StreamHash::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

std::string StreamHash::Digest() const { return Hex(XXH3_128bits_digest(state_->xxh.get())); }

Status AddBytes(const UniqueFd& fd, const std::string& path, int64_t bytes, StreamHash& hash) {
  std::string buffer(kPiece, '\0');
  for (int64_t at = 0; at < bytes;) {
    const auto piece = std::as_writable_bytes(std::span(buffer))
                           .first(static_cast<size_t>(std::min<int64_t>(kPiece, bytes - at)));
    if (TRY(ReadAt(fd, path, piece, at)) < piece.size())
      return Fail(ErrorCode::kIo,
                  fmt::format("{}: shrank to less than {} bytes while it was read", path, bytes));
    hash.Add(piece);
    at += std::ssize(piece);
  }
  return {};
}

Result<std::string> HashOfFile(const std::string& path) {
  const OpenedFile file = TRY(OpenRegularFile(path));
  StreamHash hash;
  TRY_STATUS(AddBytes(file.fd, path, file.bytes, hash));
  return hash.Digest();
}

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  static_assert(std::endian::native == std::endian::little);
  crc = ~crc;
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint32_t low, high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= crc;
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
          kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

uint32_t MaskCrc32c(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

}  // namespace weir::dataset
