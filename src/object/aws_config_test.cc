#include "object/aws_config.h"

#include <gtest/gtest.h>

namespace weir::object {
namespace {

using Texts = std::map<std::string, std::string>;

Environment EnvironmentOf(Texts values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

ReadText FilesOf(Texts files) {
  return [files = std::move(files)](const std::string& path) -> Result<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return Fail(ErrorCode::kNotFound, path);
    return found->second;
  };
}

Ask NobodyAnswers() {
  return [](const HttpRequest&) -> Result<HttpResponse> { return Fail(ErrorCode::kIo, "nobody"); };
}

HttpResponse Answer(int status, std::string_view body) { return {status, {}, Bytes::Copy(body)}; }

constexpr Duration kNow = 1'800'000'000s;
constexpr const char* kRole =
    R"({"AccessKeyId":"ROLE","SecretAccessKey":"s","Token":"t","Expiration":"2027-01-15T09:00:00Z"})";

TEST(Profiles, ReadsSectionsAndPassesOverTheRest) {
  const Profiles profiles = ParseProfiles(
      "# c\r\n[default]\nregion = a=b \ns3 =\n  max = 1\nnothing\n[profile work]\nregion=c\n[broken\nx=1\n");
  EXPECT_EQ(profiles.at("default").at("region"), "a=b");
  EXPECT_FALSE(profiles.at("default").contains("max"));
  EXPECT_EQ(profiles.at("work").at("region"), "c");
  EXPECT_EQ(profiles.size(), 2U);
}

TEST(WallTime, ReadsTheFormOfExpirations) {
  EXPECT_EQ(ParseWallTime("1970-01-02T00:00:01Z"), Duration(86401s));
  for (const char* text : {"", "1970-13-01T00:00:00Z", "1970-01-01 00:00:00Z", "1970-01-01T25:00:00Z"})
    EXPECT_FALSE(ParseWallTime(text)) << text;
}

TEST(S3Settings, TheEnvironmentCountsMoreThanTheProfile) {
  const ReadText files =
      FilesOf({{"/h/.aws/config", "[default]\nregion=eu-west-1\nendpoint_url=https://a\n"}});
  EXPECT_EQ(ReadS3Settings(EnvironmentOf({{"HOME", "/h"}}), files)->region, "eu-west-1");
  const auto settings = ReadS3Settings(
      EnvironmentOf({{"HOME", "/h"}, {"AWS_REGION", "x"}, {"AWS_ENDPOINT_URL_S3", "http://localhost:9/"}}),
      files);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->region, "x");
  EXPECT_EQ(settings->endpoint, "http://localhost:9");
  EXPECT_TRUE(settings->path_style);
}

TEST(S3Settings, PlainHttpToAnotherMachineMustBeAskedFor) {
  const auto refused =
      ReadS3Settings(EnvironmentOf({{"AWS_ENDPOINT_URL", "http://store:9000"}}), FilesOf({}));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("AWS_ALLOW_HTTP"));
  EXPECT_TRUE(ReadS3Settings(
      EnvironmentOf({{"AWS_ENDPOINT_URL", "http://store:9000"}, {"AWS_ALLOW_HTTP", "true"}}), FilesOf({})));
}

TEST(S3Settings, AProfileThatIsNotThereIsAnError) {
  EXPECT_FALSE(ReadS3Settings(EnvironmentOf({{"AWS_PROFILE", "none"}}), FilesOf({})));
}

Result<Credentials> Find(Texts environment, Texts files = {}, Ask ask = NobodyAnswers()) {
  CredentialFinder finder(EnvironmentOf(std::move(environment)), FilesOf(std::move(files)), std::move(ask),
                          "us-east-1");
  return finder.Get(kNow);
}

TEST(Credentials, OfTheEnvironmentFirst) {
  const auto found =
      Find({{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "B"}, {"HOME", "/h"}},
           {{"/h/.aws/credentials", "[default]\naws_access_key_id=C\naws_secret_access_key=D"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key, "A");
}

TEST(Credentials, OfTheProfileThatIsNamed) {
  const auto found = Find({{"AWS_PROFILE", "work"}, {"AWS_SHARED_CREDENTIALS_FILE", "/c"}},
                          {{"/c",
                            "[default]\naws_access_key_id=C\naws_secret_access_key=D\n[work]\n"
                            "aws_access_key_id=E\naws_secret_access_key=F\naws_session_token=G"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->access_key, "E");
  EXPECT_EQ(found->session_token, "G");
}

TEST(Credentials, HalfAPairIsRefusedWithoutShowingIt) {
  const auto found = Find({{"AWS_SECRET_ACCESS_KEY", "hush"}});
  ASSERT_FALSE(found);
  EXPECT_FALSE(found.error().message.contains("hush"));
}

TEST(Credentials, NoneNamesThePlaces) {
  const auto found = Find({});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(found.error().message.contains("AWS_NO_SIGN_REQUEST"));
}

TEST(Credentials, OfAContainerWithItsToken) {
  HttpRequest asked;
  const auto found = Find({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1"},
                           {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token"}},
                          {{"/token", "abc\n"}}, [&](HttpRequest request) -> Result<HttpResponse> {
                            asked = std::move(request);
                            return Answer(200, kRole);
                          });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key, "ROLE");
  EXPECT_EQ(asked.headers, (std::vector<Header>{{"Authorization", "abc"}}));
  EXPECT_FALSE(asked.use_proxy);
}

TEST(Credentials, AContainersPlaceElsewhereIsNotAskedInPlainText) {
  EXPECT_FALSE(Find({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example/v1"}}, {},
                    [](HttpRequest) -> Result<HttpResponse> { return Answer(200, kRole); }));
}

TEST(Credentials, OfAMachineByATokenAndRenewedInTime) {
  int tokens = 0;
  CredentialFinder finder(
      EnvironmentOf({}), FilesOf({}),
      [&](HttpRequest request) -> Result<HttpResponse> {
        if (request.method == "PUT") return ++tokens, Answer(200, "TOKEN");
        EXPECT_EQ(request.headers.at(0).second, "TOKEN");
        return Answer(200, request.url.ends_with("/") ? "my-role\n" : kRole);
      },
      "us-east-1");
  const Duration expires = *ParseWallTime("2027-01-15T09:00:00Z");
  ASSERT_TRUE(finder.Get(expires - 1h));
  ASSERT_TRUE(finder.Get(expires - 6min));
  EXPECT_EQ(tokens, 1);
  ASSERT_TRUE(finder.Get(expires - 4min));
  EXPECT_EQ(tokens, 2);
}

TEST(Credentials, OfAWebIdentity) {
  const auto found =
      Find({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}, {"AWS_ROLE_ARN", "arn:aws:iam::1:role/r"}},
           {{"/t", "jwt\n"}}, [](HttpRequest request) -> Result<HttpResponse> {
             EXPECT_EQ(request.url, "https://sts.us-east-1.amazonaws.com/");
             EXPECT_TRUE(request.body.text().contains("WebIdentityToken=jwt"));
             return Answer(200,
                           "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
                           "<Credentials><AccessKeyId>W</AccessKeyId><SecretAccessKey>x</SecretAccessKey>"
                           "<SessionToken>y</SessionToken><Expiration>2027-01-15T09:00:00Z</Expiration>"
                           "</Credentials></AssumeRoleWithWebIdentityResult>"
                           "</AssumeRoleWithWebIdentityResponse>");
           });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key, "W");
  EXPECT_TRUE(found->expires);
}

}  // namespace
}  // namespace weir::object
