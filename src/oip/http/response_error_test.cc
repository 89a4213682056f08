#include "oip/http/response_error.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::oip {
namespace {

TEST(HttpResponseError, HasTheMessageOfTheServerIfThereIsOne) {
  const auto error = [](int status, std::string_view body) {
    return ErrorOf({.status = status, .header_length = {}, .body = Bytes::Copy(body)});
  };
  EXPECT_EQ(error(404, R"({"error":"no \"m\""})"), (Error{ErrorCode::kNotFound, "no \"m\""}));
  EXPECT_EQ(error(503, ""), (Error{ErrorCode::kOverloaded, "the server answered with HTTP status 503"}));
  EXPECT_EQ(error(502, "<h1>\nBad</h1>"),
            (Error{ErrorCode::kIo, "the server answered with HTTP status 502: <h1> Bad</h1>"}));
  EXPECT_EQ(error(500, R"({"error":5})").message, R"(the server answered with HTTP status 500: {"error":5})");
  EXPECT_LT(error(500, std::string(5000, 'x')).message.size(), 300u);
  std::string characters;  // of three bytes
  for (int i = 0; i < 1000; ++i) characters += "\xE2\x82\xAC";
  EXPECT_EQ(error(500, "{\"error\":\"" + characters + "\"}").message, characters.substr(0, 999) + "...");
  EXPECT_EQ(error(500, R"({"error":"two\nlines"})").message, "two lines");
}

}  // namespace
}  // namespace weir::oip
