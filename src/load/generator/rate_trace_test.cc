#include "load/generator/rate_trace.h"

#include <gmock/gmock.h>

#include "load/generator/schedule.h"

namespace weir::load {
namespace {

using testing::HasSubstr;

RateTrace Parse(std::string_view lines, double speed = 1, double scale = 1) {
  return *ParseRateTrace("seconds,requests_per_s\n" + std::string(lines), speed, scale);
}

TEST(ParseRateTrace, CompressesTimeAndScalesRates) {
  const RateTrace trace = Parse("0,10\r\n60, 30\n\n120,10\n", 60, 2);
  EXPECT_EQ(trace.points, (std::vector<RateTrace::Point>{{0, 20}, {1, 60}, {2, 20}}));
  EXPECT_DOUBLE_EQ(trace.mean_per_second(), 40);
  EXPECT_DOUBLE_EQ(trace.peak_per_second(), 60);
}

TEST(ParseRateTrace, NamesTheLineThatIsWrong) {
  const auto fault = [](const std::string& text) {
    const auto trace = ParseRateTrace(text, 1, 1);
    return trace ? std::string() : trace.error().message;
  };
  EXPECT_THAT(fault("s,r\n0,1\n5;2\n"), HasSubstr("line 3: it is not SECONDS"));
  EXPECT_THAT(fault("s,r\n1,1\n5,2\n"), HasSubstr("line 2: the first time is not 0"));
  EXPECT_THAT(fault("s,r\n0,1\n5,2\n5,3\n"), HasSubstr("line 4: the time is not later"));
  EXPECT_THAT(fault("s,r\n0,-1\n5,2\n"), HasSubstr("line 2: the rate is below 0"));
  EXPECT_THAT(fault("s,r\n0,1\n"), HasSubstr("two or more lines"));
  EXPECT_THAT(fault("s,r\n0,0\n5,0\n"), HasSubstr("all 0"));
  EXPECT_THAT(fault(""), HasSubstr("two or more lines"));
}

TEST(TraceInverse, FindsWhenTheTraceHasWantedSoManyRequests) {
  TraceInverse inverse(Parse("0,0\n10,20\n20,20\n30,0\n"));  // 100, 200 and 100 requests
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(0), 0);
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(25), 5);  // half the time, a quarter of the requests
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(100), 10);
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(200), 15);
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(375), 25);
  EXPECT_GT(inverse.SecondsAt(401), 1e8);
}

TEST(TraceInverse, StaysAtTheLastRate) {
  TraceInverse inverse(Parse("0,10\n10,10\n"));
  EXPECT_DOUBLE_EQ(inverse.SecondsAt(150), 15);
}

TEST(Schedule, FollowsTheRateOfATrace) {
  const RateTrace trace = Parse("0,100\n100,100\n100.001,1000\n200,1000\n");
  Schedule schedule = *Schedule::Create(ProfileArrivals{trace}, trace.mean_per_second(), Seed(7));
  int64_t slow = 0, fast = 0;
  Duration before{};
  for (Duration at = schedule.Next(); at < 200s; at = schedule.Next()) {
    EXPECT_GE(at, before);
    before = at;
    (at < 100s ? slow : fast) += 1;
  }
  EXPECT_NEAR(static_cast<double>(slow), 10000, 400);  // four standard deviations of a Poisson count
  EXPECT_NEAR(static_cast<double>(fast), 100000, 1300);
}

TEST(TraceWindows, CountsEachRequestInItsPart) {
  TraceWindows windows(24s);
  const Instant from(100s);
  const auto sample = [&](Duration at, Outcome outcome) {
    Sample made;
    made.planned = from + at;
    made.sent = made.planned;
    made.done = made.planned + 5ms;
    made.outcome = outcome;
    return made;
  };
  windows.Add(sample(500ms, Outcome::kAnswered), from);
  windows.Add(sample(1500ms, Outcome::kUnsent), from);
  windows.Add(sample(30s, Outcome::kAnswered), from);
  TraceWindows sum(24s);
  sum.Merge(windows);
  sum.Merge(windows);
  EXPECT_EQ(sum.windows()[0].answered, 2);
  EXPECT_EQ(sum.windows()[1].unsent, 2);
  EXPECT_EQ(sum.windows()[23].planned(), 2);
  EXPECT_EQ(sum.windows()[0].response.count(), 2);
}

}  // namespace
}  // namespace weir::load
