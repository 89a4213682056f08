#include "http/error_body.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace weir::http {
namespace {

TEST(ErrorBody, IsAlwaysJson) {
  EXPECT_EQ(ErrorBody({ErrorCode::kNotFound, "no model 'a\\b' \"c\""}),
            R"({"error":"no model 'a\\b' \"c\""})");
  const auto json = ParseJson(ErrorBody({ErrorCode::kNotFound, "bad \xff byte"}));
  ASSERT_TRUE(json);
  EXPECT_EQ(GetString(*json, "error").value(), "bad \\xFF byte");
}

TEST(ErrorBody, HasABoundForAnyNameAClientChooses) {
  for (const char byte : {'x', '\xff', '\n'}) {
    const Error error{ErrorCode::kNotFound, "no \"" + std::string(60 << 20, byte) + "\"; try another"};
    EXPECT_LT(ErrorText(error).size(), kMaxErrorText + 100);
    EXPECT_LT(ErrorBody(error).size(), 7 * kMaxErrorText);
    EXPECT_TRUE(ErrorText(error).ends_with("try another")) << "the remedy stays";
  }
}

}  // namespace
}  // namespace weir::http
