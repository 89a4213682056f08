#include "predict/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const std::string& more) {
  const auto spec = ParseSpec(MadeSet::Make().spec + more);
  return spec ? "nothing" : spec.error().message;
}

TEST(Spec, KnowsTheQuestionsByName) {
  EXPECT_THAT(Refusal("questions: [inside, hardwares]\n"),
              HasSubstr("questions: \"hardwares\" is none of inside, count, hardware, network"));
  EXPECT_THAT(Refusal("questions: []\n"), HasSubstr("questions: wants at least one"));
  const auto spec = ParseSpec(MadeSet::Make().spec + "questions: [count]\n");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_THAT(spec->questions, ElementsAre("count"));
}

TEST(Spec, WantsBothPeakAndWork) {
  std::string yaml = MadeSet::Make().spec;
  const std::string_view peaks = "peaks: [tflops, work]";
  for (const char* wrong : {"peaks: [tflops]", "peaks: []", "peaks: [a, b, c]"}) {
    std::string changed = yaml;
    changed.replace(changed.find(peaks), peaks.size(), wrong);
    EXPECT_THAT(ParseSpec(changed).error().message, HasSubstr("peaks: wants two columns")) << wrong;
  }
}

TEST(Spec, SaysWhatATimeIsOf) {
  EXPECT_TRUE(ParseSpec(MadeSet::Make().spec)->time_is_of_item);
  std::string yaml = MadeSet::Make().spec;
  yaml.replace(yaml.find("of: item"), 8, "of: stem");
  EXPECT_THAT(ParseSpec(yaml).error().message, HasSubstr("of: \"stem\" is none of item, step"));
  yaml = MadeSet::Make().spec;
  yaml.replace(yaml.find("kind: rate"), 10, "kind: rote");
  EXPECT_THAT(ParseSpec(yaml).error().message, HasSubstr("target.kind: \"rote\" is none of rate, time"));
}

}  // namespace
}  // namespace weir::predict
