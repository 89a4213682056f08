#include "base/json_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

using ::testing::HasSubstr;

const std::string kFirst(4096, 'A'), kSecond(2048, 'B');

Json Sample() {
  return {{"name", "a,\"blocks\":[ in a text"},
          {"trees", Json::array({kFirst, "short", kSecond})},
          {"words", std::string(2000, '"')}};
}

TEST(Blocks, StandAtTheEndAndComeBack) {
  const std::string text = DumpWithBlocks(Sample());
  EXPECT_THAT(text, HasSubstr(R"("trees":[{"block":0},"short",{"block":1}])"));
  EXPECT_TRUE(text.ends_with(",\"blocks\":[\"" + kFirst + "\",\"" + kSecond + "\"]}"));
  EXPECT_EQ(ParseWithBlocks(text).value(), Sample());
  EXPECT_EQ(ParseWithBlocks(text + "\n").value(), Sample());
  EXPECT_EQ(ParseWithBlocks(DumpJsonIndented(ParseJson(text).value())).value(), Sample());
}

TEST(Blocks, AreNotNeeded) {
  const Json none = {{"a", 1}};
  EXPECT_EQ(ParseWithBlocks(DumpWithBlocks(none)).value(), none);
  EXPECT_EQ(ParseWithBlocks(R"({"a":1})").value(), none);
  EXPECT_EQ(ParseWithBlocks("[1]").value(), Json::array({1}));
}

TEST(Blocks, ThatAreMissingOrAskedForTwiceAreAnError) {
  for (const char* text :
       {R"({"a":{"block":1},"blocks":["AAAA"]})", R"({"a":{"block":0},"b":{"block":0},"blocks":["AAAA"]})",
        R"({"a":{"block":-1},"blocks":["AAAA"]})", R"({"a":{"block":0}})",
        R"({"a":{"block":"0"},"blocks":["AAAA"]})", R"({"a":1,"blocks":[3]})"}) {
    const auto json = ParseWithBlocks(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(json.error().message, HasSubstr("block"));
  }
}

TEST(Blocks, CutOffAnywhereAreNoJson) {
  const std::string text = DumpWithBlocks(Sample());
  for (size_t size = 0; size < text.size(); size += size < 200 || size + 20 > text.size() ? 1 : 97)
    EXPECT_FALSE(ParseWithBlocks(text.substr(0, size))) << size;
}

TEST(Blocks, OfOtherCharactersAreReadAsJsonIs) {
  EXPECT_EQ(ParseWithBlocks(R"({"a":{"block":0},"blocks":["\u0041\n"]})").value(), (Json{{"a", "A\n"}}));
  EXPECT_FALSE(ParseWithBlocks(R"({"a":{"block":0},"blocks":["AAAA"]} more)"));
  EXPECT_FALSE(ParseWithBlocks(R"({"a":{"block":0},"blocks":["AAAA""BBBB"]})"));
  EXPECT_FALSE(ParseWithBlocks(R"({"a":{"block":0},"blocks":["AAAA",]})"));
}

TEST(Blocks, AreDecodedWhole) {
  for (size_t size = 0; size < 70; ++size) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 200);
    const std::string text = EncodeBlock(bytes);
    EXPECT_EQ(DecodeBlock<uint8_t>(text).value(), bytes);
    for (size_t i = 0; i < text.size(); ++i) {
      std::string damaged = text;
      damaged[i] = i % 2 == 0 ? '\n' : '\xc3';
      EXPECT_FALSE(DecodeBlock<uint8_t>(damaged)) << size << " " << i;
    }
    EXPECT_FALSE(DecodeBlock<uint8_t>(text + "A"));
  }
  EXPECT_FALSE(DecodeBlock<uint8_t>("A=A="));
  EXPECT_FALSE(DecodeBlock<uint8_t>("===="));
}

}  // namespace
}  // namespace weir
