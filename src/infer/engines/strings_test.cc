#include "infer/engines/strings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::infer {
namespace {

using std::string_literals::operator""s;

std::string Packed(const std::vector<std::string>& strings) {
  std::string content;
  std::vector<size_t> offsets;
  for (const std::string& each : strings) {
    offsets.push_back(content.size());
    content += each;
  }
  const size_t size = PackedSize("x", std::ssize(strings), content.size()).value();
  std::string data = std::string(size - content.size(), '#') + content;
  PackStrings(std::as_writable_bytes(std::span(data)), offsets);
  return data;
}

TEST(Strings, ArePackedInPlaceWhateverTheirLengths) {
  EXPECT_EQ(Packed({}), "");
  EXPECT_EQ(Packed({""}), "\0\0\0\0"s);
  EXPECT_EQ(Packed({"ab", "", "c\0d"s, "", "a longer one"}),
            "\2\0\0\0ab\0\0\0\0\3\0\0\0c\0d\0\0\0\0\14\0\0\0a longer one"s);
  EXPECT_EQ(Packed({"", "", std::string(70'000, 'x')}),
            "\0\0\0\0\0\0\0\0\160\21\1\0"s + std::string(70'000, 'x'));
}

TEST(Strings, AreTakenOffOneByOne) {
  const std::string data = Packed({"one", "", "\0three"s});
  std::string_view rest = data;
  EXPECT_EQ(TakeString(rest), "one");
  EXPECT_EQ(TakeString(rest), "");
  EXPECT_EQ(TakeString(rest), "\0three"s);
  EXPECT_TRUE(rest.empty());
}

TEST(Strings, AreBounded) {
  EXPECT_EQ(PackedSize("x", kMaxStrings, kMaxStringBytes).value(),
            static_cast<size_t>(kMaxStrings) * 4 + kMaxStringBytes);
  EXPECT_EQ(PackedSize("output 'y'", kMaxStrings + 1, 0).error(),
            (Error{ErrorCode::kInvalidArgument,
                   "output 'y' has 4194305 strings, at most 4194304 are taken: use smaller batches"}));
  EXPECT_EQ(PackedSize("x", 1, kMaxStringBytes + 1).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::infer
