#include "http/request_headers.h"

#include <gmock/gmock.h>

namespace weir::http {
namespace {

using testing::HasSubstr;

TEST(RequestHeaders, AreNamesAndValues) {
  const auto headers = ParseRequestHeaders({"X-Key: secret words ", "authorization:Bearer a:b", "empty:"});
  ASSERT_TRUE(headers) << headers.error().message;
  EXPECT_EQ(HeaderLines(*headers), "x-key: secret words\r\nauthorization: Bearer a:b\r\nempty: \r\n");
}

TEST(RequestHeaders, CannotBecomeTwo) {
  for (const char* line :
       {"no colon", ": x", "a b: c", "a: b\r\nc: d", "a: b\nc", "caf\xc3\xa9: x", "a: \x01"})
    EXPECT_THAT(ParseRequestHeaders({line}).error().message, HasSubstr("Name: value")) << line;
}

TEST(RequestHeaders, LeaveTheClientsOwnAlone) {
  for (const char* line : {"Host: x", "CONTENT-LENGTH: 3", "grpc-timeout: 1S", "Transfer-Encoding: chunked"})
    EXPECT_THAT(ParseRequestHeaders({line}).error().message, HasSubstr("by the client itself")) << line;
}

}  // namespace
}  // namespace weir::http
