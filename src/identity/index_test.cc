#include "identity/index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/seed.h"
#include "identity/threshold.h"

namespace weir::identity {
namespace {

std::vector<Index::Enrolment> Made(int rows, size_t dimension) {
  Random random(7);
  std::vector<Index::Enrolment> made;
  for (int i = 0; i < rows; ++i) {
    made.push_back({"p" + std::to_string(i), {}});
    for (size_t k = 0; k < dimension; ++k) made.back().vector.push_back(static_cast<float>(random.Normal()));
  }
  return made;
}

std::string Folder(const char* name) {
  const std::string folder = ::testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(Index, KeepsWhatItAcknowledgedAndDeletesFromEveryFile) {
  const std::string folder = Folder("index_kept");
  ASSERT_TRUE(Index::Create(folder, 70, "aa"));
  const auto rows = Made(50, 70);
  {
    auto index = Index::Open(folder, Index::Access::kWrite).value();
    ASSERT_TRUE(index->Enrol(rows));
    EXPECT_FALSE(Index::Open(folder, Index::Access::kWrite).has_value());
  }
  auto index = Index::Open(folder, Index::Access::kWrite, "aa").value();
  const std::vector<std::vector<float>> query{rows[3].vector};
  EXPECT_EQ(index->Search(query, {})->front().front().name, "p3");
  ASSERT_TRUE(index->Seal());
  EXPECT_EQ(index->facts().sealed, 50U);
  EXPECT_NEAR(index->Search(query, {.threads = 2})->front().front().score, 1, 0.01);
  EXPECT_EQ(index->Delete("p3").value(), 1U);
  EXPECT_EQ(index->Delete("p3").error().code, ErrorCode::kNotFound);
  EXPECT_NE(index->Search(query, {})->front().front().name, "p3");
  index.reset();
  EXPECT_EQ(Index::Open(folder, Index::Access::kRead).value()->facts().rows, 49U);
  EXPECT_EQ(Index::Open(folder, Index::Access::kRead, "bb").error().code, ErrorCode::kInvalidArgument);
}

TEST(Index, FindsEveryFlippedByteAndCutOfASealedFile) {
  const std::string folder = Folder("index_flipped");
  ASSERT_TRUE(Index::Create(folder, 16, ""));
  {
    auto index = Index::Open(folder, Index::Access::kWrite).value();
    ASSERT_TRUE(index->Enrol(Made(9, 16)));
    ASSERT_TRUE(index->Seal());
  }
  const Bytes whole = ReadFile(folder + "/2.identities", 1 << 20).value();
  ASSERT_TRUE(ParseSegment(whole.span()));
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes flipped = Bytes::Copy(whole.span());
    flipped.mutable_data()[i] ^= std::byte{4};
    EXPECT_EQ(ParseSegment(flipped.span()).error().code, ErrorCode::kCorrupt) << i;
    EXPECT_FALSE(ParseSegment(whole.span().first(i)).has_value()) << i;
  }
}

TEST(Log, IsCutOnlyWhereARecordIsUnfinished) {
  const LogRecord a{LogRecord::Kind::kEnrol, "a", {1, 2}}, b{LogRecord::Kind::kDelete, "a", {}};
  const std::string first = FormatLogRecord(a, 0), text = first + FormatLogRecord(b, 1);
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(ParseLog(bytes, 2)->records, (std::vector{a, b}));
  for (size_t size = 0; size < text.size(); ++size) {
    const auto cut = ParseLog(bytes.first(size), 2).value();
    EXPECT_EQ(cut.records.size(), size >= first.size() ? 1U : 0U);
    EXPECT_EQ(cut.whole_bytes + cut.torn_bytes, size);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] ^= 4;
    EXPECT_FALSE(ParseLog(std::as_bytes(std::span(flipped)), 2).has_value()) << i;
  }
}

TEST(Threshold, FollowsTheBetaTail) {
  EXPECT_NEAR(ChanceAbove(0, 16), 0.5, 1e-6);
  EXPECT_NEAR(ChanceAbove(0.5, 4), 0.5 - (std::asin(0.5) + 0.5 * std::sqrt(0.75)) / M_PI, 1e-6);
  const double threshold = ThresholdFor(0.01, 1000000, 1.0 / 64).value();
  EXPECT_NEAR(ChanceAbove(threshold, 64) * 1e6, 0.01005, 1e-4);
}

}  // namespace
}  // namespace weir::identity
