#include "infer/engines/content_hash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace weir::infer {
namespace {

uint64_t Hash(std::string_view text) {
  return ContentHash(std::as_bytes(std::span(text.data(), text.size())));
}

// Values of `xxhsum -H64` (xxHash 0.8.1).
TEST(ContentHash, IsXxh64) {
  EXPECT_EQ(Hash(""), 0xEF46DB3751D8E999);
  EXPECT_EQ(Hash("abc"), 0x44BC2CF5AD770999);
  EXPECT_EQ(Hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1);
}

TEST(ContentHash, EveryByteCounts) {
  const std::string text(1027, 'a');
  const uint64_t hash = Hash(text);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    EXPECT_NE(Hash(changed), hash) << i;
  }
}

}  // namespace
}  // namespace weir::infer
