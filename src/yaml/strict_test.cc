#include "yaml/strict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::yaml {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Facts {
  std::string name;
  int count = 0;
  double share = 0;
  bool loud = false;
};

Result<Facts> ReadFacts(std::string_view text) {
  Facts facts;
  TRY_STATUS(ReadFile(text, 200, "fact sheet", [&](const Node& root, const Place& top) {
    return ReadMap(root, top,
                   {{"name", TextInto(facts.name)},
                    {"loud", Into(facts.loud, ReadBool)},
                    {"numbers", [&](const Node& node, const Place& place) {
                       return ReadMap(node, place,
                                      {{"count", NumberInto(facts.count, 1, 10)},
                                       {"share", NumberInto(facts.share, 0.0, 1.0)}});
                     }}});
  }));
  return facts;
}

std::string WhyNot(std::string_view text) {
  const auto facts = ReadFacts(text);
  if (facts) return "it was read";
  EXPECT_EQ(facts.error().code, ErrorCode::kInvalidArgument);
  return facts.error().message;
}

TEST(Strict, ReadsWhatIsThere) {
  const Facts facts = ReadFacts("name: \"a b\"\nloud: true\nnumbers:\n  count: +7\n  share: 0.25\n").value();
  EXPECT_EQ(facts.name, "a b");
  EXPECT_EQ(facts.count, 7);
  EXPECT_EQ(facts.share, 0.25);
  EXPECT_TRUE(facts.loud);
}

TEST(Strict, SaysWhereAndWhatWasMeant) {
  EXPECT_EQ(WhyNot("name: a\nnumbers:\n  cuont: 3\n"),
            "line 3: numbers.cuont: no such key, did you mean count?; known here: count, share");
  EXPECT_EQ(WhyNot("name: a\nweight: 3\n"), "line 2: weight: no such key; known here: name, loud, numbers");
  EXPECT_EQ(WhyNot("name: a\nname: b\n"), "line 2: name: is there twice");
  EXPECT_THAT(WhyNot("? [a]\n: b\n"), HasSubstr("a key is one word"));
}

TEST(Strict, HoldsValuesWithinTheirLimits) {
  EXPECT_EQ(WhyNot("numbers: {count: 11}"),
            "line 1: numbers.count: \"11\" is not a whole number from 1 to 10");
  for (const char* text :
       {"numbers: {count: 1.5}", "numbers: {count: 0x3}", "numbers: {count: +-3}", "numbers: {count: [3]}",
        "numbers: {count: }", "numbers: {share: nan}", "numbers: {share: inf}", "numbers: {share: 1e999}",
        "numbers: 3", "name: []", "name: ''", "loud: yes"}) {
    EXPECT_THAT(WhyNot(text), StartsWith("line 1: ")) << text;
  }
}

TEST(Strict, RefusesASecondDocument) {
  EXPECT_EQ(WhyNot("name: a\n---\nloud: true\n"),
            "line 2: a second document begins here (---): a fact sheet is one");
  EXPECT_EQ(WhyNot("---\nname: a\n"), "it was read");
}

// The library would make endless documents of this text.
TEST(Strict, RefusesACommaWhereADocumentWouldBegin) {
  EXPECT_EQ(WhyNot(","), "line 1: not YAML: \",\" stands where a key should");
  EXPECT_EQ(WhyNot(",# e.\nname: a"), "line 1: not YAML: \",\" stands where a key should");
  for (const char* text : {"name: a\n,", "]", "}", "name: a\n]", "--- ,", "...\n,", "- a\n,", "? ,"})
    EXPECT_THAT(WhyNot(text), StartsWith("line ")) << text;
}

TEST(Strict, RefusesWhatIsNoYaml) {
  EXPECT_THAT(WhyNot("name: [a\n"), HasSubstr("not YAML"));
  EXPECT_THAT(WhyNot("name: *nobody\n"), HasSubstr("not YAML"));
  EXPECT_THAT(WhyNot(std::string(150, '[')), HasSubstr("not YAML"));
  EXPECT_EQ(WhyNot(std::string(201, '#')), "201 bytes are no fact sheet: the limit is 200");
  EXPECT_EQ(WhyNot(""), "line 1: fact sheet: wants keys and values");
}

}  // namespace
}  // namespace weir::yaml
