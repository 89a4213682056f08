#include "predict/table/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/table/dataset.h"
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
  EXPECT_THAT(Refusal("splits: [inside, hardwares]\n"),
              HasSubstr("splits: \"hardwares\" is none of inside, count, hardware, network"));
  EXPECT_THAT(Refusal("splits: []\n"), HasSubstr("splits: wants at least one"));
  const auto spec = ParseSpec(MadeSet::Make().spec + "splits: [count]\n");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_THAT(spec->splits, ElementsAre("count"));
}

TEST(Spec, IsUtf8) { EXPECT_THAT(Refusal("# f\xFCr\n"), HasSubstr("the SPEC is not UTF-8")); }

TEST(Spec, WantsBothPeakAndWork) {
  std::string yaml = MadeSet::Make().spec;
  const std::string_view peaks = "peaks: [tflops, work]";
  for (const char* wrong : {"peaks: [tflops]", "peaks: []", "peaks: [a, b, c]"}) {
    std::string changed = yaml;
    changed.replace(changed.find(peaks), peaks.size(), wrong);
    EXPECT_THAT(ParseSpec(changed).error().message, HasSubstr("peaks: wants two columns")) << wrong;
  }
}

TEST(Spec, SaysByWhichCategoryNetworksAreAlike) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string yaml = MadeSet::Make().spec;
    yaml.replace(yaml.find(from), from.size(), to);
    return ParseSpec(yaml);
  };
  EXPECT_EQ(with("key: network}", "key: network, group: precision}")->networks->group, "precision");
  EXPECT_THAT(with("key: network}", "key: network, group: colour}").error().message,
              HasSubstr("networks.group: \"colour\" is none of the categories"));
  EXPECT_THAT(with("key: gpu}", "key: gpu, group: precision}").error().message,
              HasSubstr("hardware.group: is for networks only"));
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

TEST(Spec, SaysInWhichUnitTheTargetIs) {
  EXPECT_EQ(ParseSpec(MadeSet::Make().spec)->unit_ms, 1000);  // a rate is of a second, a time in ms
  const auto with = [](std::string_view to) {
    std::string yaml = MadeSet::Make().spec;
    yaml.replace(yaml.find("kind: rate"), 10, to);
    return ParseSpec(yaml);
  };
  EXPECT_EQ(with("kind: time")->unit_ms, 1);
  EXPECT_EQ(with("kind: time, unit: min")->unit_ms, 60'000);
  EXPECT_EQ(with("unit: us, kind: rate")->unit_ms, 0.001);
  EXPECT_THAT(with("kind: time, unit: sec").error().message,
              HasSubstr("target.unit: \"sec\" is none of us, ms, s, min, h"));
  const Spec minutes = *with("kind: time, unit: min");
  EXPECT_EQ(TargetFromTime(minutes, {.per = 2}, 90'000), 3);  // of two
}

TEST(Spec, WantsDevicesAndBatchToBeColumnsOfTheRows) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string yaml = MadeSet::Make().spec;
    yaml.replace(yaml.find(from), from.size(), to);
    return ParseSpec(yaml).error().message;
  };
  EXPECT_THAT(with("devices: gpu_count", "devices: work"),
              HasSubstr("devices: work is derived: name the column of the rows that --devices sets"));
  EXPECT_THAT(with("batch: batch", "batch: work"), HasSubstr("batch: work is derived"));
}

TEST(Spec, LetsNothingLookAtTheTargetButSkip) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string yaml = MadeSet::Make().spec;
    yaml.replace(yaml.find(from), from.size(), to);
    const auto spec = ParseSpec(yaml);
    return spec ? "nothing" : spec.error().message;
  };
  const auto refused = [](const std::string& place) {
    return testing::StartsWith(place + ": uses the target, items_per_s, which a prediction does not know");
  };
  EXPECT_THAT(with("batch, gpu_count]", "batch, items_per_s]"), refused("line 19: numbers.run"));
  EXPECT_THAT(with("run: [precision]", "run: [items_per_s]"), refused("line 22: categories.run"));
  EXPECT_THAT(with("3 * gflops", "gflops / items_per_s"), refused("line 11: derive.work"));
  EXPECT_THAT(with("step: 1 / batch", "step: 1 / items_per_s"), refused("line 12: terms.step"));
  EXPECT_THAT(with("ranges: [batch]", "ranges: [items_per_s]"), refused("line 14: ranges"));
  EXPECT_THAT(with("per: gpu_count", "per: items_per_s"), refused("line 7: target.per"));
  EXPECT_THAT(with("key: gpu}", "key: items_per_s}"), refused("line 5: hardware.key"));
  EXPECT_THAT(with("id: row_id", "id: items_per_s"), refused("line 4: id"));
  EXPECT_THAT(with("work: 3", "items_per_s: 3"), HasSubstr("derive.items_per_s: is the name of the target"));
  EXPECT_EQ(with("id: row_id", "id: row_id\nskip: items_per_s == ''"), "nothing");
}

TEST(Spec, DerivesAColumnFromThoseAboveItOnly) {
  const auto with = [](std::string_view derive) {
    std::string yaml = MadeSet::Make().spec;
    yaml.replace(yaml.find("derive: {work: 3 * gflops}"), 26, derive);
    const auto spec = ParseSpec(yaml);
    return spec ? "nothing" : spec.error().message;
  };
  EXPECT_EQ(with("derive: {work: 2 * work}"), "line 11: derive.work: uses itself: give it another name");
  EXPECT_EQ(with("derive:\n  work: 3 * other\n  other: work"),
            "line 12: derive.work: uses other, which stands below it (line 13): put other above it");
  EXPECT_EQ(with("derive:\n  other: gflops\n  work: 3 * other"), "nothing");
}

}  // namespace
}  // namespace weir::predict
