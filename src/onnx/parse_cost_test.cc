#include "onnx/parse_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "onnx/load.h"
#include "onnx/testing/graph_builder.h"

namespace weir::onnx {
namespace {

using google::protobuf::Descriptor;
using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = UINT64_MAX;

std::optional<uint64_t> Estimate(std::string_view bytes, uint64_t limit = kNoLimit,
                                 const Descriptor& type = *pb::ModelProto::descriptor()) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  return EstimateParsedBytes(input, type, limit);
}

std::string Repeat(std::string_view text, size_t times) {
  std::string repeated;
  repeated.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

void AppendVarint(size_t number, std::string& text) {
  for (; number >= 0x80; number >>= 7) text += static_cast<char>((number & 0x7F) | 0x80);
  text += static_cast<char>(number);
}

// A field of a length-delimited type.
std::string Field(size_t number, std::string_view content) {
  std::string text;
  AppendVarint(number << 3 | 2, text);
  AppendVarint(content.size(), text);
  return text.append(content);
}

std::string Model(std::string_view graph) { return std::string("\x08\x08", 2) + Field(7, graph); }

// `estimate` over what the messages really take, strings, growth of lists and the allocator's own apart.
double Ratio(const std::string& bytes) {
  pb::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return static_cast<double>(*Estimate(bytes)) / static_cast<double>(model.SpaceUsedLong());
}

TEST(ParseCost, IsCloseToWhatMessagesTake) {
  const std::string node =
      Field(1, Field(4, "Relu") + Field(1, "a name that is rather long") + Field(2, "y"));
  EXPECT_NEAR(Ratio(Model(Repeat(node, 1000))), 1, 0.5);
  EXPECT_NEAR(Ratio(Model(Repeat(Field(1, ""), 1000))), 1, 0.5);     // nodes
  EXPECT_NEAR(Ratio(Model(Repeat(Field(5, ""), 1000))), 1, 0.5);     // initializers
  EXPECT_NEAR(Ratio(Model(Repeat(Field(13, ""), 1000))), 1, 0.5);    // value_info
  EXPECT_NEAR(Ratio(Model(Repeat("\xA0\x06\x01", 1000))), 1, 0.5);   // an unknown number
  const std::string packed = Field(7, std::string(10'000, '\x01'));  // int64_data
  EXPECT_NEAR(Ratio(Model(Field(5, packed))), 1, 0.5);
  EXPECT_NEAR(Ratio(Model(Field(5, Field(9, std::string(100'000, 'x'))))), 1, 0.1);  // raw_data
}

TEST(ParseCost, SeesAttributesThatTheLinkedMessagesDoNotKnow) {
  const std::string defaults = Repeat(Field(11, Field(6, "")), 1000);  // AttributeProto.g
  EXPECT_GT(*Estimate(Field(25, defaults)), 1000 * sizeof(pb::AttributeProto));
}

TEST(ParseCost, StopsPastTheLimit) {
  const std::string bytes = Model(Repeat(Field(1, ""), 100'000));
  const uint64_t whole = *Estimate(bytes);
  EXPECT_GT(whole, 100'000 * sizeof(pb::NodeProto));
  EXPECT_LT(*Estimate(bytes, 10'000), 11'000U);
  EXPECT_GT(*Estimate(bytes, 10'000), 10'000U);
}

TEST(ParseCost, RefusesWhatIsNoMessage) {
  EXPECT_FALSE(Estimate(Field(7, "\x0A\x7F")));  // a length beyond the end
  EXPECT_FALSE(Estimate("\x0F"));                // a wire type that there is not
  EXPECT_FALSE(Estimate("\x0C"));                // the end of no group
  EXPECT_FALSE(Estimate("\xA3\x06"));            // a group without an end
  EXPECT_TRUE(Estimate("\xA3\x06\xA4\x06"));     // with one
  std::string nested = Field(1, "");
  for (int i = 0; i < 60; ++i) nested = Field(1, Field(5, Field(6, nested)));  // node, attribute, graph
  EXPECT_FALSE(Estimate(Model(nested)));
  pb::ModelProto model;
  EXPECT_FALSE(model.ParseFromString(Model(nested)));
}

// 256 MiB and three times the file are far beyond a network of this size.
TEST(ParseCost, KeepsABombFromBeingParsed) {
  const std::string bomb = Model(Repeat(Field(1, ""), 2'500'000));
  const auto parsed = ParseModel(bomb);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(parsed.error().message, HasSubstr("millions of small parts"));
}

}  // namespace
}  // namespace weir::onnx
