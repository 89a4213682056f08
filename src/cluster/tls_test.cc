#include "cluster/tls.h"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

constexpr char kToken[] = "0123456789abcdef";

struct Pair {
  explicit Pair(const std::string& listener = kToken, const std::string& caller = kToken)
      : listener(*TlsSession::Create(Side::kListener, listener)),
        caller(*TlsSession::Create(Side::kCaller, caller)) {}

  // Carries bytes to and fro until there are none.
  Status Settle() {
    for (int i = 0; i < 10; ++i) {
      const std::string there = caller->TakeOutput();
      if (!there.empty()) TRY_STATUS(listener->Receive(there));
      const std::string back = listener->TakeOutput();
      if (!back.empty()) TRY_STATUS(caller->Receive(back));
    }
    return {};
  }

  std::unique_ptr<TlsSession> listener, caller;
};

TEST(TlsSession, CarriesTextBothWaysWithTheSameToken) {
  Pair pair;
  ASSERT_TRUE(pair.Settle());
  ASSERT_TRUE(pair.listener->established() && pair.caller->established());
  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(pair.caller->Write(large));
  const std::string cipher = pair.caller->TakeOutput();
  EXPECT_EQ(cipher.find(std::string(64, 'x')), std::string::npos);
  ASSERT_TRUE(pair.listener->Receive(cipher));
  EXPECT_EQ(*pair.listener->Read(), large);
  ASSERT_TRUE(pair.listener->Write("back"));
  ASSERT_TRUE(pair.caller->Receive(pair.listener->TakeOutput()));
  EXPECT_EQ(*pair.caller->Read(), "back");
}

TEST(TlsSession, RefusesAnotherToken) {
  Pair pair(kToken, "another token that is long");
  const Status settled = pair.Settle();
  ASSERT_FALSE(settled);
  EXPECT_NE(settled.error().message.find("--token-file"), std::string::npos);
  EXPECT_FALSE(pair.listener->established());
}

TEST(TlsSession, RefusesWhatIsNoTls) {
  Pair pair;
  EXPECT_FALSE(pair.listener->Receive("GET / HTTP/1.1\r\n\r\n"));
}

TEST(CheckToken, WantsSixteenCharactersWithoutBlanksAtTheEnds) {
  EXPECT_EQ(*CheckToken(" 0123456789abcdef\n", "t"), kToken);
  const auto weak = CheckToken("secret\n", "token.txt");
  ASSERT_FALSE(weak);
  EXPECT_TRUE(weak.error().message.starts_with("token.txt"));
}

}  // namespace
}  // namespace weir::cluster
