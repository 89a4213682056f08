#include "object/sigv4.h"

#include <gtest/gtest.h>

namespace weir::object {
namespace {

// The empty body.
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// The examples of the page "Signature calculations for the Authorization header" of Amazon S3.
const Credentials kPage{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", {}};
const SignScope kPageScope{"20130524T000000Z", "us-east-1", "s3"};

std::string SignatureOf(const SignRequest& request, const SignScope& scope, const Credentials& credentials) {
  Signer signer;
  const std::string text = signer.Authorization(request, scope, credentials);
  return text.substr(text.find("Signature=") + 10);
}

SignRequest PageRequest(std::vector<Header> more, const std::string& hash) {
  SignRequest request{.headers = std::move(more), .payload_hash = hash};
  request.headers.emplace_back("Host", "examplebucket.s3.amazonaws.com");
  request.headers.emplace_back("x-amz-content-sha256", hash);
  request.headers.emplace_back("x-amz-date", "20130524T000000Z");
  return request;
}

TEST(SigV4, GetObjectWithARange) {
  SignRequest request = PageRequest({{"Range", "bytes=0-9"}}, kEmpty);
  request.path = "/test.txt";
  Signer signer;
  EXPECT_EQ(signer.Authorization(request, kPageScope, kPage),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, PutObject) {
  SignRequest request =
      PageRequest({{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                  Sha256Hex("Welcome to Amazon S3."));
  request.method = "PUT";
  request.path = "/test%24file.text";
  EXPECT_EQ(SignatureOf(request, kPageScope, kPage),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, AQueryWithoutAValue) {
  SignRequest request = PageRequest({}, kEmpty);
  request.query = {{"lifecycle", ""}};
  EXPECT_EQ(SignatureOf(request, kPageScope, kPage),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, ListObjectsWithAnUnsortedQuery) {
  SignRequest request = PageRequest({}, kEmpty);
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(SignatureOf(request, kPageScope, kPage),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

// aws-sig-v4-test-suite, which all of AWS's clients are tested with.
const Credentials kSuite{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", {}};
const SignScope kSuiteScope{"20150830T123600Z", "us-east-1", "service"};

SignRequest SuiteRequest(const std::string& method, const std::string& path) {
  return {.method = method,
          .path = path,
          .headers = {{"Host", "example.amazonaws.com"}, {"X-Amz-Date", "20150830T123600Z"}},
          .payload_hash = kEmpty};
}

TEST(SigV4, SuiteGetVanilla) {
  EXPECT_EQ(SignatureOf(SuiteRequest("GET", "/"), kSuiteScope, kSuite),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(SigV4, SuitePostVanilla) {
  EXPECT_EQ(SignatureOf(SuiteRequest("POST", "/"), kSuiteScope, kSuite),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

TEST(SigV4, SuiteGetUtf8) {
  EXPECT_EQ(SignatureOf(SuiteRequest("GET", "/%E1%88%B4"), kSuiteScope, kSuite),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
}

TEST(SigV4, SuiteGetVanillaQueryOrderKeyCase) {
  SignRequest request = SuiteRequest("GET", "/");
  request.query = {{"Param2", "value2"}, {"Param1", "value1"}};
  EXPECT_EQ(SignatureOf(request, kSuiteScope, kSuite),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(SigV4, AKeptKeyIsNotUsedForOtherCredentialsOrAnotherDay) {
  Signer kept;
  kept.Authorization(SuiteRequest("GET", "/"), kSuiteScope, kSuite);
  SignRequest request = PageRequest({}, kEmpty);
  request.query = {{"lifecycle", ""}};
  EXPECT_TRUE(kept.Authorization(request, kPageScope, kPage)
                  .ends_with("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(SigV4, BlanksInAHeaderAreJoined) {
  SignRequest one = SuiteRequest("GET", "/"), other = one;
  one.headers.emplace_back("My-Header", "  a   b  ");
  other.headers.emplace_back("my-header", "a b");
  EXPECT_EQ(SignatureOf(one, kSuiteScope, kSuite), SignatureOf(other, kSuiteScope, kSuite));
}

TEST(SigV4, TimestampsAreOfUtc) {
  EXPECT_EQ(SignTimestamp(1369353600s), "20130524T000000Z");
  EXPECT_EQ(SignTimestamp(1440938160s + 900ms), "20150830T123600Z");
}

}  // namespace
}  // namespace weir::object
