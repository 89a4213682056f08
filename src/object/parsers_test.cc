#include <gtest/gtest.h>

#include "object/content_range.h"
#include "object/xml.h"

namespace weir::object {
namespace {

TEST(ContentRange, ReadsSpanAndTotal) {
  EXPECT_EQ(ParseContentRange("bytes 0-9/100"), (ContentRange{0, 10, 100}));
  EXPECT_EQ(ParseContentRange("bytes 5-5/*"), (ContentRange{5, 1, std::nullopt}));
  EXPECT_EQ(ParseContentRange("bytes */0"), (ContentRange{0, 0, 0}));
}

TEST(ContentRange, RefusesWhatCannotBe) {
  for (const char* text :
       {"", "bytes", "bytes 0-9", "bytes 9-0/100", "bytes 0-100/100", "bytes -1-5/10", "bytes */*",
        "items 0-9/100", "bytes 0-9/1x", "bytes 0-9223372036854775807/*", "bytes 0-99999999999999999999/*"})
    EXPECT_FALSE(ParseContentRange(text)) << text;
}

TEST(Xml, GivesTheTextOfElementsWithTheirPath) {
  const auto texts = ParseXml(
      "<?xml version=\"1.0\"?><List xmlns=\"http://s3\"><Item><Key>a&amp;b</Key><Size>3</Size></Item>"
      "<Item><Key>c</Key></Item><Empty/></List>");
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_EQ(
      *texts,
      (std::vector<XmlText>{
          {"List/Item/Key", "a&b"}, {"List/Item/Size", "3"}, {"List/Item/Key", "c"}, {"List/Empty", ""}}));
  EXPECT_EQ(FindText(*texts, "List/Item/Key"), "a&b");
  EXPECT_EQ(FindText(*texts, "List/None"), "");
}

TEST(Xml, RefusesEntitiesDepthAndBrokenText) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "<a>";
  for (const std::string& text : {std::string(""), std::string("<a>"), std::string("<html><br></html>"), deep,
                                  std::string("<!DOCTYPE a [<!ENTITY b \"bbbb\">]><a>&b;</a>")}) {
    const auto texts = ParseXml(text);
    ASSERT_FALSE(texts) << text;
    EXPECT_EQ(texts.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace weir::object
