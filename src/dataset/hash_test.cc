#include "dataset/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::dataset {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Hash, Crc32cIsCastagnolis) {
  // RFC 3720, B.4: 32 bytes of zeros, and of ones; "123456789" is the catalogue's check value.
  EXPECT_EQ(Crc32c(BytesOf(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(Crc32c(BytesOf(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(BytesOf("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(BytesOf("")), 0u);
}

TEST(Hash, Crc32cGoesOnWithWhatCameBefore) {
  const std::string text = "a picture's bytes, and then some more of them";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = Crc32c(BytesOf(text).first(cut));
    EXPECT_EQ(Crc32c(BytesOf(text).subspan(cut), first), Crc32c(BytesOf(text))) << cut;
  }
}

TEST(Hash, CrcsAreMaskedAsTensorFlowDoes) {
  // crc32c_test.cc of TensorFlow: Unmask(Mask(crc)) == crc, and masking twice is not masking once. Worked out
  // by hand for 0xe3069283: (crc >> 15 | crc << 17) + 0xa282ead8.
  EXPECT_EQ(MaskCrc32c(0xe3069283u),
            static_cast<uint32_t>((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
}

TEST(Hash, Sha256IsTheStandards) {
  // FIPS 180-2, B.1.
  EXPECT_EQ(Sha256Of(BytesOf("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, PiecesHashAsTheWhole) {
  EXPECT_EQ(HashOf({}), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, by xxhsum -H2
  StreamHash hash;
  EXPECT_EQ(hash.Digest(), HashOf({}));
  hash.Add(BytesOf("one "));
  hash.Add(BytesOf("two"));
  EXPECT_EQ(hash.Digest(), HashOf(BytesOf("one two")));
  hash.Add(BytesOf("!"));
  EXPECT_EQ(hash.Digest(), HashOf(BytesOf("one two!")));
}

}  // namespace
}  // namespace weir::dataset
