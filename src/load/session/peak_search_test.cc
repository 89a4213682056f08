#include "load/session/peak_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "base/seed.h"

namespace weir::load {
namespace {

using stats::Answer;
using Kind = PeakSearch::Probe::Kind;
using System = std::function<Answer(const PeakSearch::Probe&)>;

PeakSearch MakeSearch(const PeakSearch::Options& options) { return PeakSearch::Create(options).value(); }

struct Found {
  PeakSearch::Outcome outcome;
  std::vector<PeakSearch::Probe> probes;
};

Found Find(const PeakSearch::Options& options, const System& system) {
  PeakSearch search = MakeSearch(options);
  Found found;
  while (const auto probe = search.Next()) {
    EXPECT_FALSE(search.outcome().has_value());
    found.probes.push_back(*probe);
    search.Tell(system(*probe));
  }
  found.outcome = search.outcome().value();
  return found;
}

System Exact(double peak) {
  return [=](const PeakSearch::Probe& probe) { return probe.rate <= peak ? Answer::kYes : Answer::kNo; };
}

// A queue with one server (M/M/1): response times are exponential with a mean of 1 / (service - rate), so
// that p99 is ln(100) / (service - rate). Each run draws its own requests.
constexpr double kService = 1000, kBound = 0.015;
const double kQueuePeak = kService - std::log(100) / kBound;  // 693 / s
System Queue(Seed seed) {
  return [=](const PeakSearch::Probe& probe) {
    Random random = seed.Stream(probe.seed_index).MakeRandom();
    const auto n = static_cast<int64_t>(10 * probe.length_factor * probe.rate);  // of ten seconds
    const double share = std::exp(-kBound * std::max(0.0, kService - probe.rate));
    int64_t over = 0;
    for (int64_t i = 0; i < n; ++i) over += random.Uniform() < share ? 1 : 0;
    return stats::QuantileIsBelow(0.99, n, over);
  };
}

std::vector<double> Rates(const Found& found) {
  std::vector<double> rates;
  for (const PeakSearch::Probe& probe : found.probes) rates.push_back(probe.rate);
  return rates;
}

TEST(PeakSearch, DoublesThenBisectsOnTheLogarithmThenConfirms) {
  const Found found = Find({.start_rate = 100, .bracket = 0.5}, Exact(450));
  // Between 400 and 800 lies 566; between 400 and 566 the bracket of a half is reached.
  EXPECT_EQ(Rates(found), (std::vector<double>{100, 200, 400, 800, std::sqrt(400.0 * 800), 400, 400, 400}));
  for (size_t i = 0; i < found.probes.size(); ++i)
    EXPECT_EQ(found.probes[i].kind, i < 5 ? Kind::kSearch : Kind::kConfirm);
  EXPECT_EQ(found.outcome.rate, 400);
  EXPECT_TRUE(found.outcome.confirmed);
  EXPECT_EQ(found.outcome.failed_at, std::sqrt(400.0 * 800));
}

TEST(PeakSearch, EndsWithinTheBracketBelowAnExactPeak) {
  for (const double peak : {0.37, 1.0, 99.9, 100.0, 101.0, 1234.5, 98765.0}) {
    for (const double bracket : {0.001, 0.02, 0.3}) {
      const auto outcome = Find({.start_rate = 100, .bracket = bracket}, Exact(peak)).outcome;
      ASSERT_TRUE(outcome.rate.has_value()) << peak;
      EXPECT_LE(*outcome.rate, peak);
      EXPECT_GT(*outcome.rate * (1 + bracket) * (1 + 1e-12), peak);
      EXPECT_GT(*outcome.failed_at, peak);
      EXPECT_TRUE(outcome.confirmed);
    }
  }
}

// 5 to double from 100 to 1600; 2^(1/64) is the first root of 2 below 1.02, so 6 to bisect; 3 to confirm.
TEST(PeakSearch, TakesFewProbes) { EXPECT_EQ(Find({.start_rate = 100}, Exact(1000)).outcome.probes, 14); }

TEST(PeakSearch, HalvesWhenTheFirstRateFails) {
  const Found found = Find({.start_rate = 800, .bracket = 1}, Exact(150));
  EXPECT_EQ(Rates(found), (std::vector<double>{800, 400, 200, 100, 100, 100, 100}));
  EXPECT_EQ(found.outcome.rate, 100);
}

TEST(PeakSearch, GivesUpAtAThousandthOfTheFirstRate) {
  const auto outcome = Find({.start_rate = 1024}, [](auto&) { return Answer::kNo; }).outcome;
  EXPECT_FALSE(outcome.rate.has_value());
  EXPECT_FALSE(outcome.confirmed);
  EXPECT_EQ(outcome.failed_at, 1);
  EXPECT_EQ(outcome.probes, 11);
}

TEST(PeakSearch, EndsAtTheMostWhenAllHolds) {
  const Found found = Find({.start_rate = 100, .most = 500}, [](auto&) { return Answer::kYes; });
  EXPECT_EQ(Rates(found), (std::vector<double>{100, 200, 400, 500, 500, 500, 500}));
  EXPECT_EQ(found.outcome.rate, 500);
  EXPECT_TRUE(found.outcome.confirmed);
  EXPECT_FALSE(found.outcome.failed_at.has_value());
}

TEST(PeakSearch, AsksOnceMoreForALongerRunWhenUndecided) {
  PeakSearch search = MakeSearch({.start_rate = 100});
  search.Tell(Answer::kUndecided);
  const auto again = search.Next();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->rate, 100);
  EXPECT_EQ(again->length_factor, 4);
  EXPECT_EQ(again->seed_index, 1);
  search.Tell(Answer::kYes);
  EXPECT_EQ(search.Next()->rate, 200);
  EXPECT_EQ(search.Next()->length_factor, 1);
}

TEST(PeakSearch, TakesWhatStaysUndecidedForAFailure) {
  const auto outcome = Find({.start_rate = 1024}, [](auto&) { return Answer::kUndecided; }).outcome;
  EXPECT_FALSE(outcome.rate.has_value());
  EXPECT_EQ(outcome.failed_at, 1);
  EXPECT_EQ(outcome.probes, 22);
}

TEST(PeakSearch, LowersTheAnswerByAStepWhenAConfirmationFailsAndBeginsAnew) {
  // Rates up to 100 hold in the search, but fail above 97 when they are confirmed.
  int held = 0;
  const Found found = Find({.start_rate = 100}, [&](const PeakSearch::Probe& probe) {
    if (probe.kind == Kind::kSearch) return probe.rate <= 100 ? Answer::kYes : Answer::kNo;
    if (probe.rate > 97 && ++held > 2) return Answer::kNo;
    return Answer::kYes;
  });
  // 100 holds twice, then 100 and 98.04 fail, and 96.1 holds three times.
  std::vector<double> rates = Rates(found);
  rates.erase(rates.begin(), rates.end() - 7);
  EXPECT_EQ(rates, (std::vector<double>{100, 100, 100, 100 / 1.02, 100 / 1.02 / 1.02, 100 / 1.02 / 1.02,
                                        100 / 1.02 / 1.02}));
  EXPECT_EQ(found.outcome.rate, 100 / 1.02 / 1.02);
  EXPECT_EQ(found.outcome.failed_at, 100 / 1.02);
  EXPECT_TRUE(found.outcome.confirmed);
}

TEST(PeakSearch, SaysSoWhenTheProbesAreUsedUp) {
  const auto searching = Find({.start_rate = 100, .most_probes = 6}, Exact(1000)).outcome;
  EXPECT_EQ(searching.probes, 6);
  EXPECT_EQ(searching.rate, 800);
  EXPECT_FALSE(searching.confirmed);
  const auto confirming = Find({.start_rate = 100, .most_probes = 13}, Exact(1000)).outcome;
  EXPECT_EQ(confirming.probes, 13);
  EXPECT_FALSE(confirming.confirmed);
  EXPECT_LE(*confirming.rate, 1000);
  const auto nothing = Find({.start_rate = 100, .most_probes = 2}, Exact(10)).outcome;
  EXPECT_FALSE(nothing.rate.has_value());
  EXPECT_EQ(nothing.failed_at, 50);
  // No rate is ever confirmed: the answer sinks until no probe is left.
  const auto sinking = Find({.start_rate = 100}, [](const PeakSearch::Probe& probe) {
                         return probe.kind == Kind::kSearch ? Exact(1000)(probe) : Answer::kNo;
                       }).outcome;
  EXPECT_EQ(sinking.probes, 64);
  EXPECT_FALSE(sinking.confirmed);
  EXPECT_LT(*sinking.rate, *sinking.failed_at);
}

TEST(PeakSearch, ConfirmsARateBelowThePeakOfANoisySystem) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Found found = Find({.start_rate = 50}, Queue(Seed(seed)));
    EXPECT_TRUE(found.outcome.confirmed);
    ASSERT_TRUE(found.outcome.rate.has_value());
    EXPECT_LT(*found.outcome.rate, kQueuePeak);
    EXPECT_GT(*found.outcome.rate, 0.9 * kQueuePeak);
    EXPECT_LT(*found.outcome.rate, *found.outcome.failed_at);
  }
}

TEST(PeakSearch, UsesNoSeedTwice) {
  const Found found = Find({.start_rate = 50}, Queue(Seed(1)));
  std::set<uint64_t> seeds;
  for (const PeakSearch::Probe& probe : found.probes) seeds.insert(probe.seed_index);
  EXPECT_EQ(seeds.size(), found.probes.size());
  EXPECT_EQ(found.outcome.probes, std::ssize(found.probes));
}

TEST(PeakSearch, RefusesOptionsThatMakeNoSearch) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const PeakSearch::Options& options : std::vector<PeakSearch::Options>{
           {.start_rate = 0},
           {.start_rate = nan},
           {.start_rate = 2e6},
           {.bracket = 0},
           {.bracket = 2},
           {.bracket = nan},
           {.confirmations = 0},
           {.most = nan},
           {.most_probes = 0},
       }) {
    const auto search = PeakSearch::Create(options);
    ASSERT_FALSE(search.has_value());
    EXPECT_EQ(search.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weir::load
