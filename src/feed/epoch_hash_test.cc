#include "feed/epoch_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::feed {
namespace {

void AddRow(EpochHash& hash, int64_t position, const std::string& row, int64_t label = 1) {
  hash.Add(position, label, std::as_bytes(std::span(row)), {});
}

TEST(EpochHash, IsTheSumOfItsParts) {
  EpochHash whole, even, odd;
  for (int64_t i = 0; i < 100; ++i) {
    AddRow(whole, i, std::to_string(i));
    AddRow(i % 2 == 0 ? even : odd, i, std::to_string(i));
  }
  EXPECT_NE(even.Digest(), odd.Digest());
  even += odd;
  EXPECT_EQ(even.Digest(), whole.Digest());
  EXPECT_EQ(EpochHash::FromDigest(whole.Digest()), whole);
}

TEST(EpochHash, DependsOnPositionLabelAndBytes) {
  EpochHash plain, place, label, bytes, twice;
  AddRow(plain, 3, "a");
  AddRow(place, 4, "a");
  AddRow(label, 3, "a", 2);
  AddRow(bytes, 3, "b");
  AddRow(twice, 3, "a");
  AddRow(twice, 3, "a");
  for (const EpochHash& other : {place, label, bytes, twice, EpochHash()})
    EXPECT_NE(other.Digest(), plain.Digest());
}

TEST(EpochHash, RefusesAnotherText) {
  for (const char* text : {"", "12", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"})
    EXPECT_FALSE(EpochHash::FromDigest(text)) << text;
}

}  // namespace
}  // namespace weir::feed
