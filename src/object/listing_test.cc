#include "object/listing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/header_rules.h"
#include "object/xml.h"

namespace weir::object {
namespace {

using testing::HasSubstr;

std::string Entry(const std::string& key, const std::string& size = "1", const std::string& etag = "\"e\"") {
  return fmt::format("<Contents><Key>{}</Key><ETag>{}</ETag><Size>{}</Size></Contents>", key, etag, size);
}

std::string PageOf(const std::string& entries, const std::string& next = "") {
  return fmt::format(
      "<ListBucketResult "
      "xmlns=\"http://s3\"><EncodingType>url</EncodingType><IsTruncated>{}</IsTruncated>{}{}"
      "</ListBucketResult>",
      next.empty() ? "false" : "true",
      next.empty() ? "" : "<NextContinuationToken>" + next + "</NextContinuationToken>", entries);
}

std::string FaultOf(const std::vector<std::string>& pages, const std::string& prefix = "p/") {
  BucketListing listing(prefix, 100'000);
  for (const std::string& page : pages) {
    const auto next = listing.Take(page);
    if (!next) return next.error().message;
  }
  const auto all = listing.Finish();
  return all ? "" : all.error().message;
}

TEST(BucketListing, JoinsPagesInByteOrder) {
  BucketListing listing("p/");
  EXPECT_EQ(listing.Take(PageOf(Entry("p/b+c", "5", "plain") + Entry("p/%C3%A4"), "t1")), "t1");
  EXPECT_EQ(listing.Take(PageOf(Entry("p/a", "0", "&quot;q&quot;"))), "");
  const auto all = listing.Finish();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3);
  EXPECT_EQ(all->at(0).key, "p/a");
  EXPECT_EQ(all->at(0).etag, "\"q\"");
  EXPECT_EQ(all->at(1).key, "p/b c");
  EXPECT_EQ(all->at(1).size, 5);
  EXPECT_EQ(all->at(1).etag, "\"plain\"");
  EXPECT_EQ(all->at(2).key, "p/\xc3\xa4");
}

TEST(BucketListing, RefusesKeysThatDoNotBeginWithThePrefix) {
  for (const char* key : {"", "p", "q/a", "../p/a", "/p/a", "%70"})
    EXPECT_THAT(FaultOf({PageOf(Entry(key))}), HasSubstr("does not begin with")) << key;
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a%00b"))}), HasSubstr("which is none"));
  EXPECT_THAT(FaultOf({PageOf(Entry("p/" + std::string(5000, 'a')))}), HasSubstr("which is none"));
  EXPECT_THAT(FaultOf({PageOf(Entry("p/%zz"))}), HasSubstr("not encoded"));
}

TEST(BucketListing, RefusesSizesAndETagsThatAreNone) {
  for (const char* size : {"", "-1", "1x", "1.5", " 1", "99999999999999999999", "9223372036854775807"})
    EXPECT_THAT(FaultOf({PageOf(Entry("p/a", size))}), HasSubstr("the size")) << size;
  for (const char* etag : {"a&#13;&#10;x-amz-acl: public-read", "a&#10;b", "a&#9;b", "a&#127;b"})
    EXPECT_THAT(FaultOf({PageOf(Entry("p/a", "1", etag))}), HasSubstr("the ETag")) << etag;
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a", "1", std::string(2000, 'e')))}), HasSubstr("the ETag"));
}

TEST(BucketListing, EndsWhatHasNoEnd) {
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a"), "t"), PageOf(Entry("p/b"), "u"), PageOf(Entry("p/c"), "t")}),
              HasSubstr("same next page"));
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a"), "t"), PageOf(Entry("p/a"), "u")}), HasSubstr("same page again"));
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a") + Entry("p/b"), "t"), PageOf(Entry("p/a"))}), HasSubstr("twice"));
  std::vector<std::string> empty, invented;
  for (int i = 0; i < 3000; ++i) {
    empty.push_back(PageOf("", fmt::format("t{}", i)));
    invented.push_back(PageOf(Entry(fmt::format("p/{}", i)), fmt::format("t{}", i)));
  }
  EXPECT_THAT(FaultOf(empty), HasSubstr("page after page is empty"));
  EXPECT_THAT(FaultOf(invented), HasSubstr("Name a longer prefix"));
  EXPECT_THAT(FaultOf({PageOf(Entry("p/a"), std::string(20'000, 't'))}), HasSubstr("has no end"));
  EXPECT_THAT(FaultOf({"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}),
              HasSubstr("without saying where"));
  EXPECT_THAT(FaultOf({"<html/>"}), HasSubstr("no listing"));
}

TEST(Xml, TakesLittleMemoryForManyOrLongElements) {
  std::string many = "<a>", named = "<" + std::string(100'000, 'a') + ">";
  for (size_t i = 0; i <= kMostXmlTexts; ++i) many += "<b/>";
  for (int i = 0; i < 10'000; ++i) named += "<b/>";
  for (const std::string& text :
       {many + "</a>", named, "<" + std::string(300, 'a') + "/>", std::string(kMostXmlBytes + 1, ' ')}) {
    const auto texts = ParseXml(text);
    ASSERT_FALSE(texts);
    EXPECT_EQ(texts.error().code, ErrorCode::kCorrupt);
  }
}

TEST(CheckRequest, RefusesWhatCouldEndALine) {
  EXPECT_TRUE(CheckRequest({.url = "http://h/a%20b", .headers = {{"If-Match", "\"e\""}}}));
  EXPECT_FALSE(CheckRequest({.url = "http://h/", .headers = {{"If-Match", "\"e\r\nx: y\""}}}));
  EXPECT_FALSE(CheckRequest({.url = "http://h/", .headers = {{"x-amz-security-token", "a\nb"}}}));
  EXPECT_FALSE(CheckRequest({.url = "http://h/", .headers = {{"a\rb", "c"}}}));
  EXPECT_FALSE(CheckRequest({.url = "http://h/ HTTP/1.1\r\nx: y"}));
}

}  // namespace
}  // namespace weir::object
