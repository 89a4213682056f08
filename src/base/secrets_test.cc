#include "base/secrets.h"

#include <gtest/gtest.h>

#include <array>

namespace weir {
namespace {

using Arguments = std::vector<std::string>;

std::string Text(std::string_view text) { return WithoutSecrets(text); }
Arguments Command(const Arguments& arguments) {
  return WithoutSecrets(std::span<const std::string>(arguments));
}

TEST(IsSecretName, ReadsTheLastWord) {
  for (const char* name : {"password",
                           "--password",
                           "PGPASSWORD",
                           "db_passwd",
                           "X-Amz-Signature",
                           "X-Amz-Credential",
                           "X-Amz-Security-Token",
                           "AWSAccessKeyId",
                           "AWS_SECRET_ACCESS_KEY",
                           "apiKey",
                           "api-key",
                           "sig",
                           "pwd",
                           "MYSQL_PWD",
                           "accessToken",
                           "access_token",
                           "token2",
                           "Authorization",
                           "Proxy-Authorization",
                           "SharedAccessSignature",
                           "sessionToken",
                           "client_secret",
                           "Cookie",
                           "--auth",
                           "pass"})
    EXPECT_TRUE(IsSecretName(name)) << name;
  for (const char* name : {"",        "token_file",  "--token-file",    "tokenizer", "max_tokens",
                           "passes",  "bypass_list", "signed",          "key",       "monkey",
                           "compass", "author",      "assign",          "--passes",  "credentials_file",
                           "id",      "no-password", "password_length", "-",         "2"})
    EXPECT_FALSE(IsSecretName(name)) << name;
}

TEST(WithoutSecrets, TakesThePasswordOutOfAUrl) {
  EXPECT_EQ(Text("rtsp://admin:s3cr3t@cam:554/a"), "rtsp://admin:***@cam:554/a");
  EXPECT_EQ(Text("http://u:p/q#r?s@t@host/x"), "http://u:***@host/x");
  EXPECT_EQ(Text("http://u:12/34@host:80/x"), "http://u:***@host:80/x");
  EXPECT_EQ(Text("http://u:p@[::1]:80/x"), "http://u:***@[::1]:80/x");
  EXPECT_EQ(Text("http://ghp_abc@host/x"), "http://***@host/x");
  EXPECT_EQ(Text("stream http://u:p@h/x: not there"), "stream http://u:***@h/x: not there");
  EXPECT_EQ(Text("http://u:p@h:1,grpc://v:q@i:2/m"), "http://u:***@h:1,grpc://v:***@i:2/m");
  EXPECT_EQ(Text("{\"a\":\"http://u:p@h\",\"b\":\"x@y\"}"), "{\"a\":\"http://u:***@h\",\"b\":\"x@y\"}");
}

TEST(WithEncodedUser, KeepsTheRest) {
  EXPECT_EQ(WithEncodedUser("http://u:p/q#r?s@t@host:1/x"), "http://u:p%2Fq%23r%3Fs%40t@host:1/x");
  EXPECT_EQ(WithEncodedUser("http://u:p@q@host:1/x?y=a@b"), "http://u:p%40q@host:1/x?y=a@b");
  EXPECT_EQ(WithEncodedUser("http://u:p%2Fq@host/x"), "http://u:p%2Fq@host/x");
  EXPECT_EQ(WithEncodedUser("http://u@host/x"), "http://u@host/x");
  EXPECT_EQ(WithEncodedUser("http://host:80/a@b"), "http://host:80/a@b");
  EXPECT_EQ(WithEncodedUser("made:fps=1"), "made:fps=1");
  EXPECT_EQ(EndOfUser("http://u:@host"), 10u);
  EXPECT_EQ(EndOfUser("http://host/a@b"), 0u);
  EXPECT_EQ(EndOfUser("a@b"), 0u);
}

TEST(WithoutSecrets, LeavesWhatIsNoPassword) {
  for (const char* text : {"http://camera:80/a@b:c",
                           "http://host:8000/icon@2x.png",
                           "http://host/x?mail=a@b",
                           "http://a:1,b:2/model@3",
                           "http://[::1]:80/a@b",
                           "s3://bucket/key:a@b",
                           "http://h/x?t=12:30&m=a@b",
                           "localhost/weir@sha256:abc",
                           "token: none was given",
                           "--token-file: no such file",
                           "10:30 - 11:00",
                           "AWS_CONTAINER_CREDENTIALS_FULL_URI: plain HTTP to another machine",
                           "a bearer of news",
                           "x == y",
                           "the signature: wrong",
                           "-",
                           "=",
                           ":",
                           "--",
                           "://",
                           "://@",
                           "a://",
                           "--batch 8",
                           ""})
    EXPECT_EQ(Text(text), text);
}

TEST(WithoutSecrets, TakesSecretParametersOutOfAQuery) {
  EXPECT_EQ(Text("https://b.s3/k?X-Amz-Date=2&X-Amz-Credential=AK/1&X-Amz-Signature=ab&X-Amz-Expires=9"),
            "https://b.s3/k?X-Amz-Date=2&X-Amz-Credential=***&X-Amz-Signature=***&X-Amz-Expires=9");
  EXPECT_EQ(Text("https://a.blob/c?sv=1&sig=a%2Bb%3D&se=2"), "https://a.blob/c?sv=1&sig=***&se=2");
  EXPECT_EQ(Text("http://h/x?id=7&password=a#b/c@d&n=1"), "http://h/x?id=7&password=***&n=1");
  EXPECT_EQ(Text("http://h/x?key=abc&n=1"), "http://h/x?key=***&n=1");
  EXPECT_EQ(Text("http://h/x?token=a, http://h/y?TOKEN=b"), "http://h/x?token=*** http://h/y?TOKEN=***");
  EXPECT_EQ(Text("http://h/x#access_token=abc"), "http://h/x#access_token=***");
}

TEST(WithoutSecrets, TakesNamedValuesOutOfAText) {
  EXPECT_EQ(Text("curl -H 'Authorization: Bearer abc def' x"), "curl -H 'Authorization: ***' x");
  EXPECT_EQ(Text("Authorization: Basic abc\r\nHost: x"), "Authorization: ***\r\nHost: x");
  EXPECT_EQ(Text("run --password hunter2 --n 1"), "run --password *** --n 1");
  EXPECT_EQ(Text("command: [./s, --api-key, abc]"), "command: [./s, --api-key, ***");
  EXPECT_EQ(Text("PGPASSWORD=abc psql"), "PGPASSWORD=*** psql");
  EXPECT_EQ(Text("PGPASSWORD='a b' psql"), "PGPASSWORD='***' psql");
  EXPECT_EQ(Text("{\"password\": \"a\\\"b\", \"n\": 1}"), "{\"password\": \"***\", \"n\": 1}");
  EXPECT_EQ(Text("got Bearer abcdefgh."), "got Bearer ***");
  EXPECT_EQ(Text("x-api-key: abc"), "x-api-key: ***");
}

TEST(WithoutSecrets, ReadsArgumentsWhole) {
  EXPECT_EQ(Command({"psql", "--password=a b&c", "--token", "-x y", "--json", "-"}),
            (Arguments{"psql", "--password=***", "--token", "***", "--json", "-"}));
  EXPECT_EQ(
      Command({"curl", "-H", "X-Any: abc", "-HX-Any: abc", "--header=X-Any: abc", "-H", "Accept: x"}),
      (Arguments{"curl", "-H", "X-Any: ***", "-HX-Any: ***", "--header=X-Any: ***", "-H", "Accept: x"}));
  EXPECT_EQ(Command({"curl", "-u", "user:1a", "--user=user:abc", "-uuser:abc"}),
            (Arguments{"curl", "-u", "user:***", "--user=user:***", "-uuser:***"}));
  EXPECT_EQ(Command({"env", "AWS_SECRET_ACCESS_KEY=a/b+c=", "x"}),
            (Arguments{"env", "AWS_SECRET_ACCESS_KEY=***", "x"}));
  EXPECT_EQ(Command({"weir", "watch", "rtsp://u:p'q\"r@h/x", "--webhook=http://u:p@h/x?token=t"}),
            (Arguments{"weir", "watch", "rtsp://u:***@h/x", "--webhook=http://u:***@h/x?token=***"}));
  EXPECT_EQ(Command({"weir", "run", "u:p/w@h:80/m"}), (Arguments{"weir", "run", "u:***@h:80/m"}));
}

TEST(WithoutSecrets, LeavesOtherArguments) {
  const Arguments plain = {"weir",
                           "load",
                           "-u",
                           "localhost:8000,localhost:8001",
                           "--url=h:80",
                           "--token-file",
                           "t",
                           "a=b",
                           "-",
                           "--hosts",
                           "me@a:1,local",
                           "reg:5000/weir@sha256:ab",
                           "c:a b@c"};
  EXPECT_EQ(Command(plain), plain);
}

TEST(WithoutSecrets, LeavesTheNamesOfVariables) {
  for (const char* text :
       {"exec server --token=$TOKEN", "--password \"$DB_PASSWORD\"", "PGPASSWORD=${PW} psql"})
    EXPECT_EQ(Text(text), text);
  EXPECT_EQ(Text("--token=$ecret"), "--token=***");
  EXPECT_EQ(Command({"x", "--token", "$TOKEN", "--token=$TOKEN"}),
            (Arguments{"x", "--token", "$TOKEN", "--token=$TOKEN"}));
}

TEST(WithoutSecrets, GoesThroughJson) {
  const Json json{{"command", {"x", "--password", "a"}}, {"n", 1}, {"in", {{"url", "http://u:p@h"}}}};
  EXPECT_EQ(DumpJson(JsonWithoutSecrets(json)),
            R"({"command":["x","--password","***"],"n":1,"in":{"url":"http://u:***@h"}})");
  EXPECT_EQ(DumpJson(JsonWithoutSecrets(Json::array())), "[]");
}

// A second pass, as text goes from one place to the next, changes nothing.
TEST(WithoutSecrets, IsDoneAtOnce) {
  for (const char* text : {"http://u:p@h/x?sig=a&b=c", "--token abc", "Authorization: abc def"})
    EXPECT_EQ(Text(Text(text)), Text(text));
}

}  // namespace
}  // namespace weir
