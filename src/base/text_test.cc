#include "base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(CutMiddle, LeavesShortTextAsItIs) {
  EXPECT_EQ(CutMiddle("", 8), "");
  EXPECT_EQ(CutMiddle("12345678", 8), "12345678");
}

TEST(CutMiddle, KeepsTheBeginningAndTheEnd) {
  EXPECT_EQ(CutMiddle("123456789", 8), "123456... (1 bytes left out) ...89");
  EXPECT_EQ(CutMiddle("a" + std::string(1000, '-') + "z", 4), "a--... (998 bytes left out) ...z");
}

TEST(CutMiddle, DoesNotCutThroughACharacter) {
  const std::string text = "12345\xC3\xA4" + std::string(100, '-') + "\xE2\x82\xAC" + "9";
  // Bytes 6 and -2 are inside of the two characters.
  EXPECT_EQ(CutMiddle(text, 8), "12345... (105 bytes left out) ...9");
}

TEST(CutMiddle, KeepsItsBoundWhereTextIsNotUtf8) {
  const std::string text(1000, '\x80');
  EXPECT_LT(CutMiddle(text, 100).size(), 160u);
}

TEST(CutToOneLine, KeepsTheBeginningWithoutLineBreaks) {
  EXPECT_EQ(CutToOneLine("a\r\nb", 10), "a  b");
  EXPECT_EQ(CutToOneLine("12345678", 8), "12345678");
  EXPECT_EQ(CutToOneLine("1234567\xC3\xA4", 8), "1234567...");
}

TEST(DecodePercent, GivesTheBytes) {
  EXPECT_EQ(DecodePercent("a%20b%2Fc%e2"), "a b/c\xE2");
  EXPECT_EQ(DecodePercent(""), "");
}

TEST(DecodePercent, WantsTwoDigits) {
  for (const char* const bad : {"%", "a%2", "%zz", "%1g"}) EXPECT_EQ(DecodePercent(bad), std::nullopt) << bad;
}

TEST(Quoted, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Quoted("it's\n\x1B[0m\\"), "'it\\x27s\\x0A\\x1B[0m\\x5C'");
  EXPECT_EQ(Quoted("\xC3\xA4"), "'\xC3\xA4'");
  EXPECT_EQ(Quoted("\xC3"), "'\\xC3'");
  EXPECT_EQ(Quoted(std::string(81, 'a')), "'" + std::string(80, 'a') + "...'");
}

}  // namespace
}  // namespace weir
