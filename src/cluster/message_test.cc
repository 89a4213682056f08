#include "cluster/message.h"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

Message Made() {
  return {.body = Json{{"kind", "call"}, {"id", 7}}, .block = std::string("\0\xff binary", 9)};
}

TEST(Message, ComesBackFromItsBytesInPiecesOfAnySize) {
  const std::string bytes = *EncodeMessage(Made()) + *EncodeMessage({}) + *EncodeMessage(Made());
  for (const size_t piece : {size_t{1}, size_t{5}, bytes.size()}) {
    MessageReader reader;
    std::vector<Message> read;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Add(std::string_view(bytes).substr(at, piece));
      while (true) {
        auto next = reader.Next();
        ASSERT_TRUE(next.has_value());
        if (!*next) break;
        read.push_back(**std::move(next));
      }
    }
    ASSERT_EQ(read.size(), 3);
    EXPECT_EQ(read[0].body, Made().body);
    EXPECT_EQ(read[0].block, Made().block);
    EXPECT_EQ(read[1].body, Json::object());
    EXPECT_EQ(read[2].block, Made().block);
  }
}

TEST(Message, OfAnotherVersionNamesBoth) {
  std::string bytes = *EncodeMessage(Made());
  bytes[2] = 9;
  MessageReader reader;
  reader.Add(bytes);
  const auto next = reader.Next();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(next.error().message.find("version 9"), std::string::npos);
}

TEST(Message, RefusesOtherBytesAndSizesBeforeTheyAreThere) {
  MessageReader http;
  http.Add("GET / HTTP/1.1\r\n");
  EXPECT_EQ(http.Next().error().code, ErrorCode::kCorrupt);
  std::string bytes = *EncodeMessage(Made());
  bytes[7] = 0x7f;
  MessageReader large;
  large.Add(bytes);
  EXPECT_EQ(large.Next().error().code, ErrorCode::kCorrupt);
}

TEST(Message, OfAStrangerIsSmall) {
  Message large = Made();
  large.block = std::string(kMostFirstBytes, 'x');
  MessageReader reader(kMostFirstBytes);
  reader.Add(*EncodeMessage(large));
  EXPECT_EQ(reader.Next().error().code, ErrorCode::kCorrupt);
  MessageReader later(kMostFirstBytes);
  later.set_most(kMostMessageBytes);
  later.Add(*EncodeMessage(large));
  EXPECT_TRUE(*later.HasNext());
}

TEST(Message, OfTooManyValuesOrTooDeepIsRefused) {
  std::string many = "{\"a\":[";
  for (int i = 0; i < 1'100'000; ++i) many += "0,";
  many += "0]}";
  std::string deep(200, '[');
  for (const std::string& text : {many, deep + "0" + std::string(200, ']')}) {
    std::string bytes = *EncodeMessage({});
    bytes.resize(bytes.size() - 2);
    for (size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(text.size() >> (8 * i));
    MessageReader reader;
    reader.Add(bytes + text);
    EXPECT_EQ(reader.Next().error().code, ErrorCode::kCorrupt);
  }
}

TEST(Message, CarriesHistograms) {
  stats::Histogram one, two;
  one.Add(5);
  two.Add(7, 3);
  std::string block;
  AppendHistograms(block, {&one, &two});
  stats::Histogram read_one, read_two;
  std::string_view rest = block;
  ASSERT_TRUE(TakeHistograms(rest, {&read_one, &read_two}));
  EXPECT_EQ(read_one.count(), 1);
  EXPECT_EQ(read_two.Max(), 7);
  EXPECT_FALSE(TakeHistograms(rest, {&read_one}));
}

}  // namespace
}  // namespace weir::cluster
