#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(IsUtf8, TakesCharactersOfEachLength) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain text of more than eight bytes"));
  EXPECT_TRUE(IsUtf8("12345678\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80 and plain text again"));
  EXPECT_TRUE(IsUtf8(std::string("\0", 1)));
}

TEST(IsUtf8, RefusesADamagedCharacterWhereverItIs) {
  const std::string around = "abcdefghijklmnopqrstuvwxyz";
  for (size_t i = 0; i <= around.size(); ++i) {
    for (const char* const bad :
         {"\x80", "\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
      EXPECT_FALSE(IsUtf8(around.substr(0, i) + bad + around.substr(i))) << i << " " << around;
    }
  }
}

}  // namespace
}  // namespace weir
