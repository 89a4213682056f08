#include "advise/goal.h"

#include <gtest/gtest.h>

namespace weir::advise {
namespace {

TEST(ParseTarget, ReadsNamesSignsAndUnits) {
  const auto p99 = ParseTarget("p99<15ms");
  ASSERT_TRUE(p99.has_value());
  EXPECT_EQ(p99->metric, "response_ms.p99");
  EXPECT_DOUBLE_EQ(p99->limit, 15);
  EXPECT_TRUE(p99->at_most);
  EXPECT_DOUBLE_EQ(ParseTarget("p50<=250us")->limit, 0.25);
  EXPECT_DOUBLE_EQ(ParseTarget("memory<2GB")->limit, 2e9);
  EXPECT_FALSE(ParseTarget("throughput>400")->at_most);
  for (const auto& [given, told] : {std::pair{"p99<15", "p99<15ms"},
                                    {"p99<15us", "p99<15us"},
                                    {"throughput>400", "throughput>400 images/s"},
                                    {"memory<2000000000", "memory<2000000000 bytes"}}) {
    const auto target = ParseTarget(given);
    EXPECT_EQ(target->text, told);
    EXPECT_EQ(ParseTarget(target->text)->limit, target->limit) << "what is told can be given";
  }
}

TEST(ParseTarget, NamesThePartThatIsWrong) {
  EXPECT_NE(ParseTarget("p98<15ms").error().message.find("p98"), std::string::npos);
  EXPECT_NE(ParseTarget("p99<15hours").error().message.find("hours"), std::string::npos);
  EXPECT_FALSE(ParseTarget("p99=15ms"));
  EXPECT_FALSE(ParseTarget("p99>15ms"));
  EXPECT_FALSE(ParseTarget("throughput<15"));
  EXPECT_FALSE(ParseTarget("p99<"));
  EXPECT_FALSE(ParseTarget("p99<-3ms"));
  EXPECT_FALSE(ParseTarget("p99<infms"));
}

TEST(ResponsesFor, AreTenBeyondTheHighestPercentile) {
  const auto of = [](std::vector<const char*> texts) {
    Goal goal;
    for (const char* text : texts) goal.targets.push_back(*ParseTarget(text));
    return ResponsesFor(goal);
  };
  EXPECT_EQ(of({"p90<15ms"}), 100);
  EXPECT_EQ(of({"p99<15ms", "p50<5ms"}), 1000);
  EXPECT_EQ(of({"p99.9<15ms"}), 10'000);
  EXPECT_EQ(of({"throughput>400", "memory<2GB"}), std::nullopt);
}

TEST(ParsePrice, WantsANameAndAPriceAboveZero) {
  EXPECT_EQ(ParsePrice("h100-sxm=2.5")->first, "h100-sxm");
  EXPECT_DOUBLE_EQ(ParsePrice("h100-sxm=2.5")->second, 2.5);
  EXPECT_FALSE(ParsePrice("=2"));
  EXPECT_FALSE(ParsePrice("a=0"));
  EXPECT_FALSE(ParsePrice("a=2x"));
}

}  // namespace
}  // namespace weir::advise
