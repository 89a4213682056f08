#include "advise/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/seed.h"

namespace weir::advise {
namespace {

// A server with a known best: 8 batches, 6 numbers in flight, 4 instances, 2 protocols, 2 modes.
std::vector<Point> FullFactorial() {
  std::vector<Point> points;
  for (int batch = 0; batch < 8; ++batch)
    for (int in_flight = 0; in_flight < 6; ++in_flight)
      for (int instances = 0; instances < 4; ++instances)
        for (int protocol = 0; protocol < 2; ++protocol)
          for (int mode = 0; mode < 2; ++mode)
            points.push_back({batch, in_flight, instances, protocol, mode});
  return points;
}

struct System {
  double peak_batch = 5, peak_in_flight = 3, peak_instances = 2;

  // Images/s without noise: smooth peaks, and an interaction of batch and mode.
  double Truth(const Point& p) const {
    const double batch = p[0] - peak_batch, in_flight = p[1] - peak_in_flight;
    const double instances = p[2] - peak_instances;
    double log = -0.05 * batch * batch - 0.06 * in_flight * in_flight - 0.08 * instances * instances;
    log += p[3] == 1 ? 0.10 : 0;
    log += p[4] == 1 ? 0.05 * p[0] / 7.0 : -0.02;
    return 400 * std::exp(log);
  }
  // The p99 target is missed by large batches with many in flight.
  static bool Meets(const Point& p) { return p[0] + p[1] <= 9; }
};

SearchAnswer Play(Search& search, const std::vector<Point>& points, const System& system, Random& random) {
  while (const auto next = search.Next()) {
    const double score = system.Truth(points[*next]) * std::exp(0.02 * random.Normal());
    search.Take({.score = score, .meets = System::Meets(points[*next])});
  }
  return search.answer();
}

double Best(const std::vector<Point>& points, const System& system) {
  double best = 0;
  for (const Point& p : points) {
    if (System::Meets(p)) best = std::max(best, system.Truth(p));
  }
  return best;
}

TEST(Search, FindsTheBestOrOneWithin2PercentInAFifthOfTheTrialsFor18Of20Seeds) {
  const std::vector<Point> points = FullFactorial();
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const System system{.peak_batch = double(seed % 8),
                        .peak_in_flight = double(seed % 5),
                        .peak_instances = double(seed % 4)};
    auto search = Search::Create(points, {.seed = seed});
    ASSERT_TRUE(search.has_value());
    Random random(seed);
    const SearchAnswer answer = Play(*search, points, system, random);
    EXPECT_LE(search->trials() * 5, std::ssize(points) * 3) << "seed " << seed;  // of three repeats
    found += System::Meets(points[answer.winner]) &&
             system.Truth(points[answer.winner]) >= 0.98 * Best(points, system);
  }
  EXPECT_GE(found, 18);
}

TEST(Search, IsTheSameForTheSameSeedAndResults) {
  const std::vector<Point> points = FullFactorial();
  const System system;
  auto a = Search::Create(points, {.seed = 7}), b = Search::Create(points, {.seed = 7});
  Random one(3), other(3);
  EXPECT_EQ(Play(*a, points, system, one).winner, Play(*b, points, system, other).winner);
  EXPECT_EQ(a->trials(), b->trials());
}

TEST(Search, JudgesFreshTrialsOnly) {
  // The screening flatters candidate 0; its fresh trials are poor. Five candidates are more than the
  // finalists.
  const std::vector<Point> points{{0}, {1}, {2}, {3}, {4}};
  auto search = Search::Create(points);
  std::set<size_t> seen;
  while (const auto next = search->Next()) {
    const bool fresh = search->phase() == Phase::kConfirmation;
    const double scores[] = {fresh ? 95.0 + double(search->trials() % 3) * 0.1 : 100.0,
                             99.0 + double(search->trials() % 2) * 0.1, 50, 40, 30};
    search->Take({.score = scores[*next]});
  }
  EXPECT_EQ(search->answer().winner, 1u);
  EXPECT_EQ(search->answer().runner_up, 0u);
  EXPECT_TRUE(search->answer().significant);
  EXPECT_EQ(search->answer().ending, Ending::kClear);
}

TEST(Search, StopsAtEquivalenceWithoutClaimingADifference) {
  const std::vector<Point> points{{0}, {1}};
  auto search = Search::Create(points);
  Random random(5);
  while (search->Next()) search->Take({.score = 100 * std::exp(0.001 * random.Normal())});
  EXPECT_EQ(search->answer().ending, Ending::kEquivalent);
  EXPECT_FALSE(search->answer().significant);
  EXPECT_LT(search->trials(), 12);
}

TEST(Search, SaysThatNoCandidateMeetsTheTargets) {
  auto search = Search::Create({{0}, {1}, {2}});
  while (search->Next()) search->Take({.score = 1, .meets = false});
  EXPECT_EQ(search->answer().ending, Ending::kNoneMeets);
  EXPECT_EQ(search->trials(), 12);  // four blocks of the three: no trial met them, so no more are played
}

TEST(Search, PlaysFewCandidatesInBlocksAtOnceAndNoMoreThanTheCap) {
  auto search = Search::Create({{0}, {1}, {2}}, {.most_trials = 24});
  ASSERT_TRUE(search.has_value());
  Random random(9);
  while (search->Next()) {
    EXPECT_EQ(search->phase(), Phase::kConfirmation);
    search->Take({.score = 100 * std::exp(0.2 * random.Normal())});  // too noisy to decide
  }
  EXPECT_EQ(search->trials(), 24);
  EXPECT_EQ(search->answer().ending, Ending::kBlocksUsedUp);
}

TEST(Search, TakesASingleCandidateAndRefusesNoneOrTheSameTwice) {
  auto search = Search::Create({{0, 0}});
  while (search->Next()) search->Take({.score = 10});
  EXPECT_EQ(search->answer().winner, 0u);
  EXPECT_EQ(search->answer().scores.size(), 4u);
  EXPECT_FALSE(Search::Create({}));
  EXPECT_FALSE(Search::Create({{0}, {0}}));
  EXPECT_FALSE(Search::Create({{0}, {0, 1}}));
}

}  // namespace
}  // namespace weir::advise
