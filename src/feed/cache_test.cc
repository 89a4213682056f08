#include "feed/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "feed/disk_cache.h"

namespace weir::feed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/feed_cache_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::shared_ptr<SampleCache> OnDisk(uint64_t bytes = 1 << 20) {
    auto cache = OpenDiskCache(root_, bytes);
    EXPECT_TRUE(cache) << cache.error().message;
    return *cache;
  }
  std::string root_;
};

void Keep(SampleCache& cache, uint64_t key, const std::string& text, RawShape shape = {0, 0, 0}) {
  cache.Keep(key, {shape, std::as_bytes(std::span(text))});
}

std::string Find(SampleCache& cache, uint64_t key) {
  ReadBuffer buffer;
  const auto kept = cache.Find(key, buffer);
  if (!kept) return "none";
  return std::string(reinterpret_cast<const char*>(kept->bytes.data()), kept->bytes.size());
}

TEST_F(Cache, GivesWhatWasKeptFirst) {
  for (const auto& cache : {MakeMemoryCache(1 << 20), OnDisk()}) {
    EXPECT_FALSE(cache->Has(7));
    EXPECT_EQ(Find(*cache, 7), "none");
    Keep(*cache, 7, "seven");
    Keep(*cache, 8, "", {0, 0, 0});
    Keep(*cache, 7, "again");
    EXPECT_TRUE(cache->Has(7));
    EXPECT_EQ(Find(*cache, 7), "seven");
    EXPECT_EQ(Find(*cache, 8), "");
    Keep(*cache, 9, "abcdef", {2, 1, 3});
    ReadBuffer buffer;
    EXPECT_EQ(cache->Find(9, buffer)->pixels, (RawShape{2, 1, 3}));
  }
}

TEST_F(Cache, TakesNoMoreThanItsBytes) {
  const std::string sample(1000, 'a');
  for (const auto& cache : {MakeMemoryCache(2500), OnDisk(2500)}) {
    for (uint64_t key = 1; key <= 9; ++key) Keep(*cache, key, sample);
    int kept = 0;
    for (uint64_t key = 1; key <= 9; ++key) kept += cache->Has(key) ? 1 : 0;
    EXPECT_EQ(kept, 2);
    EXPECT_TRUE(cache->Has(1));  // nothing is evicted
  }
  EXPECT_LE(std::filesystem::file_size(root_ + "/data") + std::filesystem::file_size(root_ + "/index"),
            2500u);
}

TEST_F(Cache, OnDiskOutlivesItsProcessAndIsShared) {
  const auto first = OnDisk(), second = OnDisk();
  Keep(*first, 1, "one");
  EXPECT_EQ(Find(*second, 1), "one");
  Keep(*second, 2, "two");
  Keep(*first, 3, "three");
  const auto third = OnDisk();
  EXPECT_EQ(Find(*third, 1) + Find(*third, 2) + Find(*third, 3), "onetwothree");
  EXPECT_EQ(Find(*first, 2), "two");
}

TEST_F(Cache, OnDiskMakesDamagedSamplesAgain) {
  Keep(*OnDisk(), 1, "some pixels");
  std::string data = *ReadTextFile(root_ + "/data");
  data[20] ^= 1;
  ASSERT_TRUE(WriteFileWhole(root_ + "/data", data));
  const auto cache = OnDisk();
  EXPECT_EQ(Find(*cache, 1), "none");
  Keep(*cache, 1, "some pixels");
  EXPECT_EQ(Find(*cache, 1), "some pixels");
}

TEST_F(Cache, OnDiskIsWholeAfterAKillInTheMiddleOfWriting) {
  Keep(*OnDisk(), 1, "one");
  // Data without an entry, and a part of an entry.
  ASSERT_TRUE(WriteFileWhole(root_ + "/data", *ReadTextFile(root_ + "/data") + "half of a sam"));
  ASSERT_TRUE(WriteFileWhole(root_ + "/index", *ReadTextFile(root_ + "/index") + "0123456789"));
  const auto cache = OnDisk();
  EXPECT_EQ(Find(*cache, 1), "one");
  Keep(*cache, 2, "two");
  EXPECT_EQ(Find(*cache, 2), "two");
  EXPECT_EQ(Find(*OnDisk(), 2), "two");
}

TEST_F(Cache, RefusesOtherFiles) {
  std::filesystem::create_directories(root_);
  ASSERT_TRUE(WriteFileWhole(root_ + "/index", std::string(100, 'x')));
  const auto cache = OpenDiskCache(root_, 1 << 20);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(cache.error().message, HasSubstr("give another folder"));
  EXPECT_THAT(OpenCache({.folder = root_}).error().message, HasSubstr("say how many bytes"));
  EXPECT_EQ(*OpenCache({}), nullptr);
}

TEST(CacheEntries, ThatCannotBeTrueAreLeftOut) {
  const CacheEntry entries[] = {{1, 0, 16, 0},          {2, 90, 16, 0},        {3, 0, 3, 0},
                                {4, UINT64_MAX, 16, 0}, {5, 0, UINT64_MAX, 0}, {6, 84, 16, 0}};
  const auto kept = ParseCacheEntries(std::as_bytes(std::span(entries)), 100);
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(kept[1].key, 6u);
  EXPECT_THAT(ParseCacheEntries(std::as_bytes(std::span(entries)).first(31), 100), IsEmpty());
}

}  // namespace
}  // namespace weir::feed
