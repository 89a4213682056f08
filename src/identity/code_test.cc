#include "identity/code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/seed.h"
#include "identity/lists.h"
#include "identity/made.h"

namespace weir::identity {
namespace {

std::vector<float> Normals(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

double Dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(Rotation, KeepsProductsAndIsUndone) {
  for (const size_t dimension : {2, 3, 70, 128, 512, 768}) {
    const Rotation rotation(dimension);
    const auto a = Normals(dimension, 1), b = Normals(dimension, 2);
    auto turned = a, other = b;
    rotation.Apply(turned);
    rotation.Apply(other);
    EXPECT_NEAR(Dot(turned, other), Dot(a, b), 1e-3 * static_cast<double>(dimension)) << dimension;
    rotation.Undo(turned);
    for (size_t i = 0; i < dimension; ++i) EXPECT_NEAR(turned[i], a[i], 1e-4F) << dimension;
  }
}

TEST(Rotation, SpreadsASingleValueOverAll) {
  const Rotation rotation(768);
  std::vector<float> axis(768);
  axis[0] = 1;
  rotation.Apply(axis);
  EXPECT_LT(std::abs(*std::ranges::max_element(axis, {}, [](float v) { return std::abs(v); })), 0.25F);
}

TEST(Kernels, ProductsAreExactAtTheEndsOfTheRangeAndForOddSizes) {
  for (const size_t size : {1, 31, 64, 513}) {
    std::vector<int8_t> a(size, 127), b(size, -127);
    EXPECT_EQ(Product(a.data(), b.data(), size), -127 * 127 * static_cast<int32_t>(size));
  }
}

class CodesOfBits : public ::testing::TestWithParam<int> {};

// The scan's score of a row is the product of the query and the centre plus the estimated product with the
// residual, whatever the slot, the number of rows and of columns.
TEST_P(CodesOfBits, ScanScoresAreThoseOfTheCodesWrittenOut) {
  for (const size_t dimension : {20, 512, 5000}) {
    const CodeLayout layout{dimension, GetParam()};
    const size_t rows = 45, slots = 64;
    std::vector<uint8_t> codes(slots * layout.columns());
    std::vector<float> factors(slots);
    const auto query = Normals(dimension, 9);
    const QueryTables tables = MakeTables(query, layout);
    std::vector<double> wanted;
    for (size_t row = 0; row < rows; ++row) {
      const auto residual = Normals(dimension, 100 + row);
      std::vector<uint8_t> code(layout.columns());
      factors[row] = Encode(residual, layout, code.data());
      double product = 0;
      for (size_t i = 0; i < dimension; ++i) {
        int level = 0;
        for (int b = 0; b < layout.bits; ++b)
          level |= (code[static_cast<size_t>(b) * layout.plane_bytes() + i / 8] >> (i % 8) & 1) << b;
        product += static_cast<double>(query[i]) * (2 * level - (1 << layout.bits) + 1);
      }
      wanted.push_back(0.5 + static_cast<double>(factors[row]) * product);
      for (size_t c = 0; c < code.size(); ++c)
        codes[(row / kGroup * layout.columns() + c) * kGroup + BytePlace(row % kGroup)] = code[c];
    }
    Highest highest(rows);
    ScanList({.codes = codes.data(),
              .factors = factors.data(),
              .rows = rows,
              .columns = layout.columns(),
              .first_row = 1000},
             tables, 0.5F, highest);
    const auto found = highest.Take();
    ASSERT_EQ(found.size(), rows);
    // Entries are rounded to 1/127 of the widest table: the error of a sum grows with the root of their
    // number.
    const double error = 6 * static_cast<double>(tables.step) *
                         std::sqrt(static_cast<double>(layout.columns())) * static_cast<double>(factors[0]);
    for (const Candidate& candidate : found)
      EXPECT_NEAR(candidate.score, wanted[candidate.row - 1000], error) << dimension;
  }
}

// The error of the estimate shrinks with more bits.
TEST_P(CodesOfBits, EstimateIsUnbiasedAndWithinItsError) {
  const CodeLayout layout{512, GetParam()};
  const double bound = GetParam() == 1 ? 0.05 : GetParam() == 2 ? 0.02 : 0.008;
  double sum = 0, squares = 0;
  const int tries = 200;
  for (int t = 0; t < tries; ++t) {
    auto residual = Normals(512, static_cast<uint64_t>(t));
    const auto mate = PlantMate(
        [&] {
          const double length = std::sqrt(Dot(residual, residual));
          for (float& value : residual) value /= static_cast<float>(length);
          return residual;
        }(),
        0.4, static_cast<uint64_t>(t) + 7000);
    std::vector<uint8_t> code(layout.columns());
    const float factor = Encode(residual, layout, code.data());
    std::vector<uint8_t> group(layout.columns() * kGroup);
    for (size_t c = 0; c < code.size(); ++c) group[c * kGroup] = code[c];
    std::vector<float> factors(kGroup, factor);
    Highest highest(1);
    ScanList({.codes = group.data(), .factors = factors.data(), .rows = 1, .columns = layout.columns()},
             MakeTables(mate, layout), 0, highest);
    const double miss = static_cast<double>(highest.Take().front().score) - 0.4;
    sum += miss;
    squares += miss * miss;
  }
  EXPECT_NEAR(sum / tries, 0, 4 * bound / std::sqrt(tries));
  EXPECT_LT(std::sqrt(squares / tries), bound);
}

INSTANTIATE_TEST_SUITE_P(Bits, CodesOfBits, ::testing::Values(1, 2, 4));

TEST(Quantise, RefusesVectorsWithoutADirection) {
  const Rotation rotation(4);
  EXPECT_FALSE(Quantise(std::vector<float>{0, 0, 0, 0}, rotation));
  EXPECT_FALSE(Quantise(std::vector<float>{1, NAN, 0, 0}, rotation));
  EXPECT_FALSE(Quantise(std::vector<float>{1, INFINITY, 0, 0}, rotation));
  EXPECT_FALSE(Quantise(std::vector<float>{3e38F, 3e38F, 0, 0}, rotation)) << "finite, but not its length";
  EXPECT_TRUE(Quantise(std::vector<float>{3.4e38F, 0, 0, 0}, rotation));
  const auto made = Quantise(std::vector<float>{3e18F, 4e18F, 0, 0}, rotation);
  ASSERT_TRUE(made);
  EXPECT_NEAR(Cosine(made->values.data(), made->scale, made->values.data(), made->scale, 4), 1, 1e-5);
}

TEST(Lists, AreTheSameForAnyNumberOfWorkersAndHoldTheirRows) {
  const MadeIdentities made({.dimension = 64, .intrinsic = 8, .seed = 3});
  VectorSample sample;
  sample.dimension = 64;
  const Rotation rotation(64);
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto vector = Quantise(made.Vector(i), rotation).value();
    sample.values.insert(sample.values.end(), vector.values.begin(), vector.values.end());
    sample.scales.push_back(vector.scale);
  }
  Team one(1), three(3);
  const auto lists = TrainLists(sample, 100, 5, one);
  EXPECT_EQ(lists->centres, TrainLists(sample, 100, 5, three)->centres);
  EXPECT_NEAR(static_cast<double>(lists->size()), 100, 15);
  // Nearly every row is nearer to its list's centre than a random centre would be.
  const ListFinder finder(lists, one);
  double mean = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const int8_t* const row = sample.values.data() + i * 64;
    const uint32_t list = finder.Nearest(row);
    mean += Cosine(row, sample.scales[i], lists->centres.data() + list * 64, lists->scales[list], 64);
  }
  EXPECT_GT(mean / 2000, 0.6);
}

TEST(Team, DoesEveryPartOnceAndNestedCallsToo) {
  Team team(3);
  std::vector<std::atomic<int>> done(1000);
  team.ForEachPart(10, 1, [&](size_t begin, size_t) {
    team.ForEachPart(100, 7, [&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i) ++done[begin * 100 + i];
    });
  });
  for (const auto& count : done) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace weir::identity
