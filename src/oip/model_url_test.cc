#include <gtest/gtest.h>

#include "http/server_url.h"
#include "oip/client.h"

namespace weir::oip {
namespace {

TEST(ModelUrl, ReadsServerNameAndVersion) {
  const struct {
    const char *url, *server, *model, *version;
  } rows[] = {
      {"http://localhost:8000/tiny", "http://localhost:8000", "tiny", ""},
      {"grpc://10.0.0.1:8001/resnet50.pixels", "grpc://10.0.0.1:8001", "resnet50.pixels", ""},
      {"http://[::1]:80/m/versions/3", "http://[::1]:80", "m", "3"},
      {"http://a_b-c.d:1/m/", "http://a_b-c.d:1", "m", ""},
      {"http://h:1/m/versions/v10/", "http://h:1", "m", "v10"},
      {"http://h:1/a%20b%2Fc", "http://h:1", "a b/c", ""},
  };
  for (const auto& row : rows) {
    const auto url = ParseModelUrl(row.url);
    ASSERT_TRUE(url) << row.url << ": " << url.error().message;
    EXPECT_EQ(url->server, row.server);
    EXPECT_EQ(url->model, row.model);
    EXPECT_EQ(url->version, row.version);
  }
}

TEST(ModelUrl, NamesWhatIsWrong) {
  const struct {
    const char *url, *words;
  } rows[] = {
      {"https://h:1/m", "https is not spoken here"},
      {"ftp://h:1/m", "begins with http:// or grpc://"},
      {"http://h/m", "names no port"},
      {"http://h:/m", "names no port"},
      {"http://h:0/m", "\"0\" is not a port"},
      {"http://h:65536/m", "\"65536\" is not a port"},
      {"http://h:80a/m", "\"80a\" is not a port"},
      {"http://:80/m", "names no host"},
      {"http://user@h:80/m", "takes no user or password"},
      {"http://[::1/m", "is not closed"},
      {"http://[zz]:1/m", "\"zz\" is not an IPv6 address"},
      {"http://[::1]80/m", "after ] comes :PORT"},
      {"http://h:1", "names no model"},
      {"http://h:1/", "names no model"},
      {"http://h:1/a/b", "may only come /versions/V"},
      {"http://h:1/m/versions/", "may only come /versions/V"},
      {"http://h:1/m/versions/1/2", "names no version"},
      {"http://h:1/m?x", "ends with its name"},
      {"http://h:1/a%2", "two hexadecimal digits"},
      {"http://h:1/a%zz", "two hexadecimal digits"},
  };
  for (const auto& row : rows) {
    const auto url = ParseModelUrl(row.url);
    ASSERT_FALSE(url) << row.url;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument) << row.url;
    EXPECT_NE(url.error().message.find(row.words), std::string::npos) << url.error().message;
  }
}

TEST(ModelUrl, FilesAreNotUrls) {
  EXPECT_FALSE(IsModelUrl("made/tiny"));
  EXPECT_FALSE(IsModelUrl("http.onnx"));
  EXPECT_TRUE(IsModelUrl("grpc://h:1/m"));
}

TEST(ServerUrl, TellsLiteralAddressesFromNames) {
  EXPECT_TRUE(http::ParseServerUrl("http://127.0.0.1:80")->literal());
  EXPECT_TRUE(http::ParseServerUrl("http://[::1]:80")->literal());
  EXPECT_FALSE(http::ParseServerUrl("grpc://localhost:80")->literal());
  EXPECT_EQ(http::ParseServerUrl("grpc://[::1]:80/")->Address(), "[::1]:80");
}

}  // namespace
}  // namespace weir::oip
