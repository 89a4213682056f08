#include "base/duration.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

TEST(ParseDuration, ReadsUnits) {
  EXPECT_EQ(*ParseDuration("180us"), 180us);
  EXPECT_EQ(*ParseDuration("+250us"), 250us);
  EXPECT_EQ(*ParseDuration("1.5ms"), 1500us);
  EXPECT_EQ(*ParseDuration("100ms"), 100ms);
  EXPECT_EQ(*ParseDuration("1.5s"), 1500ms);
  EXPECT_EQ(*ParseDuration("2m"), 2min);
  EXPECT_EQ(*ParseDuration("0.5h"), 30min);
  EXPECT_EQ(*ParseDuration("0"), Duration::zero());
  EXPECT_EQ(*ParseDuration("0s"), Duration::zero());
}

TEST(ParseDuration, RefusesOtherTexts) {
  for (const char* bad : {"", "5", "10", "ms", "m", "-1s", "-1m", "nans", "infs", "1e30s", "1e9h", "1 s",
                          "10min", "++1s", "+", "1s "})
    EXPECT_EQ(ParseDuration(bad).error().code, ErrorCode::kInvalidArgument) << bad;
}

TEST(ParseDuration, NamesTheMostThatIsAllowed) {
  EXPECT_EQ(*ParseDuration("1s", 1s), 1s);
  EXPECT_THAT(ParseDuration("1001ms", 1s).error().message, testing::HasSubstr("above 1 s"));
}

}  // namespace
}  // namespace weir
