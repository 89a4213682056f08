#include "base/base64.h"

#include <gtest/gtest.h>

#include <random>

namespace weir {
namespace {

std::optional<std::string> Decode(std::string_view text) {
  std::string bytes(DecodedBytes(text), '?');
  if (!DecodeBase64(text, bytes)) return std::nullopt;
  return bytes;
}

// RFC 4648, section 10.
TEST(Base64, GivesTheVectorsOfItsStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(Decode(text), bytes);
  }
}

TEST(Base64, ComesBackForAllLengths) {
  std::mt19937_64 random(1);
  for (size_t size = 0; size < 300; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random());
    EXPECT_EQ(Decode(EncodeBase64(bytes)), bytes);
  }
}

TEST(Base64, RefusesOtherTexts) {
  for (const char* text : {"Zg", "Zg=", "Zg==\n", " Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9",
                           "Zm9v\nZg==", "Zg==Zg==", "Zm-_", "Zm9\xff"}) {
    EXPECT_EQ(Decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weir
