#include "object/url.h"

#include <gtest/gtest.h>

namespace weir::object {
namespace {

TEST(ObjectUrl, AKeyOfS3IsTakenAsItStands) {
  const auto url = ParseObjectUrl("s3://bucket/a//b =+%20\xc3\xa4?x");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->host, "bucket");
  EXPECT_EQ(url->key, "a//b =+%20\xc3\xa4?x");
  EXPECT_EQ(ToText(*url), "s3://bucket/a//b =+%20\xc3\xa4?x");
}

TEST(ObjectUrl, ABucketAloneHasAnEmptyKey) {
  EXPECT_EQ(ParseObjectUrl("s3://bucket")->key, "");
  EXPECT_EQ(ParseObjectUrl("s3://bucket/")->key, "");
}

TEST(ObjectUrl, RefusesWhatIsNoName) {
  for (const char* text : {"", "s3://", "s3://ab/key", "s3://-bucket/key", "s3://a b c/key", "ftp://host/a",
                           "http://", "http:///a", "http://host/a b", "http://host/a\nb"}) {
    const auto url = ParseObjectUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(ObjectUrl, APasswordIsRefusedAndNotShown) {
  const auto url = ParseObjectUrl("https://user:secret@host/a");
  ASSERT_FALSE(url);
  EXPECT_FALSE(url.error().message.contains("secret"));
}

TEST(ObjectUrl, TextForPeopleLeavesTheQueryOut) {
  EXPECT_EQ(ToText(*ParseObjectUrl("https://host:81/a/b?X-Amz-Signature=abc")), "https://host:81/a/b");
}

TEST(ObjectUrl, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(EncodeUri("a/b =+~\xc3\xa4", Slash::kKeep), "a/b%20%3D%2B~%C3%A4");
  EXPECT_EQ(EncodeUri("a/b", Slash::kEncode), "a%2Fb");
}

TEST(ObjectUrl, KnowsThisMachine) {
  for (const char* host : {"localhost", "localhost:9000", "127.0.0.1:9000", "127.1.2.3", "[::1]:80"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"example.com", "127.evil.com", "10.0.0.1", "localhost.evil.com:80"})
    EXPECT_FALSE(IsLoopback(host)) << host;
}

}  // namespace
}  // namespace weir::object
