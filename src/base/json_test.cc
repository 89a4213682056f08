#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/seed.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Json, ParserRefusesWhatIsNotJsonAndWhatIsTooDeep) {
  EXPECT_FALSE(ParseJson("{\"a\":"));
  EXPECT_FALSE(ParseJson(std::string(100000, '[')));
  EXPECT_FALSE(ParseJson(std::string(1000, '[') + std::string(1000, ']')));
  EXPECT_EQ(GetInteger(ParseJson("{\"a\": 3}").value(), "a"), 3);
  EXPECT_FALSE(GetInteger(ParseJson("{\"a\": 18446744073709551615}").value(), "a"));
  EXPECT_FALSE(GetString(ParseJson("[1]").value(), "a"));
}

TEST(Json, TheParserHoldsItsLimits) {
  EXPECT_TRUE(ParseJson("[1,[2,3]]", {.values = 5, .depth = 2}));
  EXPECT_THAT(ParseJson("[1,[2,3]]", {.values = 4}).error().message, HasSubstr("more than 4 values"));
  EXPECT_THAT(ParseJson("[1,[2,3]]", {.depth = 1}).error().message, HasSubstr("nested deeper than 1"));
  EXPECT_THAT(ParseJson("[1,[2,3]]", {.bytes = 8}).error().message, HasSubstr("9 bytes, more than 8"));
}

// 200,000 keys took nlohmann's ordered_json minutes, since it searched all of them at each insertion.
TEST(Json, ManyKeysAreReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text += "\"key7\":\"the last counts\"}";
  const Json json = ParseJson(text).value();
  EXPECT_EQ(json.size(), 200'000u);
  EXPECT_EQ(json["key199999"], 199'999);
  EXPECT_EQ(json["key7"], "the last counts");
  EXPECT_FALSE(json.contains("key200000"));
}

TEST(Json, KeysKeepTheirOrderAndMayBeErased) {
  Json json;
  for (int i = 40; i > 0; --i) json[std::to_string(i)] = i;
  EXPECT_EQ(json.begin().key(), "40");
  EXPECT_EQ(json.erase("39"), 1u);
  EXPECT_EQ(json.erase("39"), 0u);
  EXPECT_EQ((++json.begin()).key(), "38");
  EXPECT_EQ(json["2"], 2);
  Json copy = json;
  copy["2"] = "other";
  EXPECT_EQ(json["2"], 2);
  EXPECT_EQ(copy["2"], "other");
  EXPECT_NE(copy, json);
}

TEST(Json, AListOfKeysAndValuesIsAnObject) {
  EXPECT_EQ(DumpJson({{"a", 1}, {"b", {{"c", nullptr}}}}), R"({"a":1,"b":{"c":null}})");
  EXPECT_EQ(DumpJson(Json{1, "b", 2.5}), R"([1,"b",2.5])");
  EXPECT_EQ(DumpJson(std::map<std::string, std::vector<int>>{{"x", {1, 2}}}), R"({"x":[1,2]})");
  EXPECT_EQ(DumpJson(std::vector<bool>{true, false}), "[true,false]");
}

TEST(Json, APartMayReplaceItsWhole) {
  Json json = {{"a", {{"b", "text"}}}};
  json = json["a"]["b"];
  EXPECT_EQ(json, "text");
  Json other = {{"a", {{"b", "text"}}}};
  Json moved = std::move(other["a"]);
  other = std::move(moved);
  EXPECT_EQ(other, (Json{{"b", "text"}}));
}

TEST(Json, NumbersBecomeTheNearestThatATypeHolds) {
  EXPECT_EQ(Json(1e300).get<int64_t>(), INT64_MAX);
  EXPECT_EQ(Json(UINT64_MAX).get<int>(), std::numeric_limits<int>::max());
  EXPECT_EQ(Json(-5).get<uint8_t>(), 0);
  EXPECT_EQ(Json(-3.9).get<int>(), -3);
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).get<int>(), 0);
  EXPECT_EQ(ParseJson("7").value().get<double>(), 7.0);
}

TEST(Json, AValueOfAnotherKindThrows) {
  EXPECT_THROW(Json("text").get<int>(), JsonError);
  EXPECT_THROW(Json(1).get<std::string>(), JsonError);
  EXPECT_THROW(Json::array().at(0), JsonError);
  EXPECT_THROW(Json::object().at("a"), JsonError);
  EXPECT_THROW(Json(1).value("a", 1), JsonError);
  EXPECT_THROW(Json(Json{{"a", "text"}}).value("a", 1), JsonError);
}

TEST(Json, EqualNumbersAreEqualWhateverTheirKind) {
  EXPECT_EQ(Json(5), Json(5u));
  EXPECT_EQ(Json(5), Json(5.0));
  EXPECT_NE(Json(-1), Json(UINT64_MAX));
  EXPECT_EQ((Json{{"a", 1}, {"b", 2}}), (Json{{"b", 2}, {"a", 1}}));
}

TEST(Json, ItemsGiveNamesAndValues) {
  const Json json = {{"a", 1}, {"b", 2}};
  std::vector<std::string> seen;
  for (const auto& [key, value] : json.items()) seen.push_back(key + DumpJson(value));
  EXPECT_THAT(seen, ElementsAre("a1", "b2"));
  EXPECT_EQ(json.FindPath("/b")->get<int>(), 2);
  EXPECT_EQ(json.FindPath("/c"), nullptr);
}

// nlohmann's own tree as the twin: the same texts are refused, and what is read is written the same way.
TEST(Json, ReadsAndWritesAsNlohmannDoes) {
  const std::vector<std::string> parts = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"a\"",
                                          "\"b\"",
                                          "\"\\u00e9\\n\"",
                                          "\"\\ud83d\\ude00\"",
                                          "\"",
                                          "\\",
                                          "1",
                                          "-0",
                                          "0.1",
                                          "1e20",
                                          "-2.5e-7",
                                          "1e15",
                                          "123456789012345678",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "1e400",
                                          "true",
                                          "false",
                                          "null",
                                          " ",
                                          "\"\xff\"",
                                          "\"\x01\"",
                                          "nul",
                                          "01"};
  Random random = Seed(7).Stream("texts").MakeRandom();
  int valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text;
    for (int64_t n = random.Integer(1, 9); n > 0; --n)
      text += parts[static_cast<size_t>(random.Integer(0, std::ssize(parts) - 1))];
    const auto twin = nlohmann::ordered_json::parse(text, nullptr, false);
    const auto read = ParseJson(text);
    ASSERT_EQ(read.has_value(), !twin.is_discarded()) << text;
    if (!read) continue;
    ++valid;
    ASSERT_EQ(DumpJson(*read), twin.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    ASSERT_EQ(DumpJsonIndented(*read), twin.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  EXPECT_GT(valid, 1000);
}

TEST(Json, TextThatIsNotUtf8IsMended) {
  EXPECT_EQ(DumpJson(Json{{"a\xff", "\x80z"}}), "{\"a\xEF\xBF\xBD\":\"\xEF\xBF\xBDz\"}");
  EXPECT_EQ(DumpJson(std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace weir
