#include <gtest/gtest.h>

#include <string>

#include "base/seed.h"
#include "stats/histogram.h"

namespace weir::stats {
namespace {

Histogram Made(int count) {
  Histogram made;
  Random random(7);
  for (int i = 0; i < count; ++i) made.Add(static_cast<int64_t>(random.Uniform(0, 5e6)));
  return made;
}

std::optional<Histogram> Read(std::string_view bytes) { return Histogram::TakeFrom(bytes); }

TEST(HistogramBytes, GiveTheSameHistogramAgain) {
  for (const int count : {0, 1, 2, 5000}) {
    const Histogram made = Made(count);
    std::string bytes;
    made.AppendTo(bytes);
    const auto read = Read(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->Buckets(), made.Buckets());
    EXPECT_EQ(read->count(), made.count());
    EXPECT_EQ(read->Min(), made.Min());
    EXPECT_EQ(read->Max(), made.Max());
    EXPECT_EQ(read->Mean(), made.Mean());
    EXPECT_EQ(read->StandardDeviation(), made.StandardDeviation());
  }
}

TEST(HistogramBytes, LeaveTheBytesBehindThem) {
  std::string bytes;
  Made(10).AppendTo(bytes);
  Made(20).AppendTo(bytes);
  std::string_view rest = bytes;
  ASSERT_EQ(Histogram::TakeFrom(rest)->count(), 10);
  ASSERT_EQ(Histogram::TakeFrom(rest)->count(), 20);
  EXPECT_TRUE(rest.empty());
}

TEST(HistogramBytes, OfAnyPartAloneAreNoHistogram) {
  std::string bytes;
  Made(100).AppendTo(bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Read(std::string_view(bytes).substr(0, size)));
}

TEST(HistogramBytes, ThatContradictThemselvesAreRefused) {
  Histogram one;
  one.Add(5);
  std::string bytes;
  one.AppendTo(bytes);
  ASSERT_TRUE(Read(bytes));
  for (const size_t at : {0, 1, 2}) {  // count, least, greatest
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] + 1);
    EXPECT_FALSE(Read(broken)) << at;
  }
}

}  // namespace
}  // namespace weir::stats
