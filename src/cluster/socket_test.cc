#include "cluster/socket.h"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

TEST(ParseAddress, TakesNamesAndAddresses) {
  EXPECT_EQ(*ParseAddress("a:7000"), (Address{"a", 7000}));
  EXPECT_EQ(*ParseAddress("[::1]:0"), (Address{"::1", 0}));
  EXPECT_EQ(ParseAddress("[::1]:9")->ToString(), "[::1]:9");
  for (const char* bad : {"a", ":1", "a:", "a:70000", "::1", "-o:1", "a b:1", "u@h:1", "a:1x"})
    EXPECT_FALSE(ParseAddress(bad)) << bad;
}

TEST(IsLoopback, IsOfThisMachineAlone) {
  for (const char* host : {"127.0.0.1", "127.3.2.1", "::1", "localhost"}) EXPECT_TRUE(IsLoopback(host));
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "example"}) EXPECT_FALSE(IsLoopback(host));
}

}  // namespace
}  // namespace weir::cluster
