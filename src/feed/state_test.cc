#include "feed/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::feed {
namespace {

using ::testing::HasSubstr;

FeedState Some() {
  return {.set = std::string(32, 'a'),
          .recipe = std::string(16, 'b'),
          .seed = ~uint64_t{0},
          .epoch = 3,
          .position = 90};
}

TEST(FeedState, ComesBackFromItsText) {
  const std::string text = FormatState(Some());
  EXPECT_LT(text.size(), 1024u);
  const auto state = ParseState(text);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(*state, Some());
}

TEST(FeedState, IsReadStrictly) {
  EXPECT_EQ(ParseState("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ParseState("[1]").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(ParseState(std::string(2000, ' ')).error().code, ErrorCode::kCorrupt);
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text = FormatState(Some());
    text.replace(text.find(from), from.size(), to);
    const auto state = ParseState(text);
    return state ? std::string("read") : state.error().message;
  };
  EXPECT_THAT(with("\"epoch\":3", "\"epoch\":-3"), HasSubstr("at least 0"));
  EXPECT_THAT(with("\"epoch\":3", "\"epoch\":\"3\""), HasSubstr("epoch"));
  EXPECT_THAT(with("\"epoch\":3,", ""), HasSubstr("epoch"));
  EXPECT_THAT(with("aaaa", "zzzz"), HasSubstr("hash"));
  EXPECT_THAT(with("\"weir_feed_state\":1", "\"weir_feed_state\":2"), HasSubstr("version 2"));
}

TEST(FeedState, OfAnotherFeedIsRefused) {
  EXPECT_TRUE(CheckState(Some(), Some(), 90));
  FeedState other = Some();
  other.set = std::string(32, 'c');
  EXPECT_THAT(CheckState(other, Some(), 90).error().message, HasSubstr("another set"));
  other = Some();
  other.recipe = std::string(16, 'c');
  EXPECT_THAT(CheckState(other, Some(), 90).error().message, HasSubstr("augmentation"));
  other = Some();
  other.seed = 5;
  EXPECT_THAT(CheckState(other, Some(), 90).error().message, HasSubstr("seed 5"));
  EXPECT_THAT(CheckState(Some(), Some(), 89).error().message, HasSubstr("position 90"));
}

}  // namespace
}  // namespace weir::feed
