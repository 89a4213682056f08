#include "serve/refusal_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::serve {
namespace {

TEST(RefusalLog, WritesTheFirstOfAKindAndThenOneInTenSecondsWithTheNumberOfOthers) {
  ManualClock clock;
  std::vector<std::string> lines;
  RefusalLog log(clock, [&](LogLevel, const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) log.Tell("too_many_connections", "refused a connection");
  log.Tell("cross_site", "refused a page");
  EXPECT_EQ(lines, (std::vector<std::string>{"refused a connection", "refused a page"}));
  clock.Advance(9s);
  log.Tell("too_many_connections", "refused a connection");
  EXPECT_EQ(lines.size(), 2u);
  clock.Advance(1s);
  log.Tell("too_many_connections", "refused a connection");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "refused a connection (1000 more since the last such line)");
  clock.Advance(20s);
  log.Tell("cross_site", "refused a page");
  EXPECT_EQ(lines.back(), "refused a page");
}

}  // namespace
}  // namespace weir::serve
