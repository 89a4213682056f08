#include "feed/order.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "feed/chance.h"

namespace weir::feed {
namespace {

TEST(Philox, GivesTheNumbersOfItsAuthors) {
  // kat_vectors of Random123 1.14.
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Chance, DependsOnItsKeyAlone) {
  Chance once(1, 2, 3, Operation::kCrop), again(1, 2, 3, Operation::kCrop);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(once.Next(), again.Next());
  const double first = Chance(1, 2, 3, Operation::kCrop).Uniform();
  EXPECT_NE(first, Chance(2, 2, 3, Operation::kCrop).Uniform());
  EXPECT_NE(first, Chance(1, 3, 3, Operation::kCrop).Uniform());
  EXPECT_NE(first, Chance(1, 2, 4, Operation::kCrop).Uniform());
  EXPECT_NE(first, Chance(1, 2, 3, Operation::kFlip).Uniform());
}

TEST(Chance, OfNeighboursIsUniform) {
  // The largest distance of the empirical distribution from the uniform one, of first draws of neighbouring
  // samples.
  constexpr int kDraws = 100'000;
  std::vector<double> draws;
  for (uint64_t sample = 0; sample < kDraws; ++sample)
    draws.push_back(Chance(7, 0, sample, Operation::kFlip).Uniform());
  std::sort(draws.begin(), draws.end());
  double distance = 0;
  for (int i = 0; i < kDraws; ++i) {
    distance = std::max({distance, std::abs(draws[i] - static_cast<double>(i) / kDraws),
                         std::abs(draws[i] - static_cast<double>(i + 1) / kDraws)});
  }
  EXPECT_LT(distance * std::sqrt(kDraws), 1.95);  // 0.1 % of uniform draws are further
}

TEST(Chance, TakesEveryWholeNumberOfARange) {
  std::array<int, 6> counts{};
  Chance chance(1, 1, 1, Operation::kCrop);
  for (int i = 0; i < 60'000; ++i) ++counts[static_cast<size_t>(chance.Integer(-2, 3) + 2)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(chance.Integer(5, 5), 5);
  chance.Integer(INT64_MIN, INT64_MAX);
}

TEST(Permutation, TakesEachValueOnce) {
  for (const uint64_t count : {1, 2, 3, 4, 5, 16, 17, 1000, 65'537}) {
    const Permutation order(count * 31, count);
    std::vector<bool> seen(count);
    for (uint64_t position = 0; position < count; ++position) {
      const uint64_t value = order.At(position);
      ASSERT_LT(value, count);
      ASSERT_FALSE(seen[value]) << count;
      seen[value] = true;
      ASSERT_EQ(order.PositionOf(value), position) << count;
    }
  }
}

TEST(Permutation, OfNothingIsRefusedAndNotWaitedFor) {
  EXPECT_DEATH(Permutation(1, 0).At(0), "position < count_");
}

TEST(Permutation, PutsEachValueAnywhere) {
  for (const uint64_t count : {2, 3, 5, 10}) {
    constexpr int kKeys = 40'000;
    std::vector<int> places(count);
    for (int key = 0; key < kKeys; ++key) ++places[Permutation(static_cast<uint64_t>(key), count).At(0)];
    for (const int place : places)
      EXPECT_NEAR(place, kKeys / static_cast<double>(count), 0.04 * kKeys / static_cast<double>(count))
          << count;
  }
}

TEST(Permutation, OfAMillionKeepsNoNeighbours) {
  const Permutation order(5, 1'000'000);
  int neighbours = 0;
  for (uint64_t i = 0; i + 1 < 100'000; ++i) neighbours += order.At(i + 1) == order.At(i) + 1 ? 1 : 0;
  EXPECT_LT(neighbours, 5);  // 0.1 expected
}

}  // namespace
}  // namespace weir::feed
