#include "report/text.h"

#include <gtest/gtest.h>

namespace weir::report {
namespace {

TEST(ToText, BreaksTextAtSpaces) {
  EXPECT_EQ(ToText({.title = "t", .blocks = {Paragraph{"one two three"}}}, 8), "one two\nthree\n");
  EXPECT_EQ(ToText({.title = "t", .blocks = {Paragraph{"a_b * c", Paragraph::Tone::kWarning}}}),
            "! a_b * c\n");
  EXPECT_EQ(ToText({.title = "t", .blocks = {List{{"one two three"}}}}, 12), "  - one two\n    three\n");
}

TEST(ToText, AlignsTables) {
  const Table table{.caption = {},
                    .columns = {"name", "n"},
                    .rows = {{"\xc3\xa4", "10"}, {"long name", "7"}},
                    .notes = {"(1) why"}};
  EXPECT_EQ(ToText({.title = "t", .blocks = {table}}),
            "name        n\n\xc3\xa4          10\nlong name   7\n(1) why\n");
}

}  // namespace
}  // namespace weir::report
