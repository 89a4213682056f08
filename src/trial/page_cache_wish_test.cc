#include "trial/page_cache_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::trial {
namespace {

using launch::CacheState;
using testing::HasSubstr;

constexpr uint64_t kMB = 1 << 20;

TEST(CheckCold, TakesASetThatIsMostlyOutOfMemory) {
  EXPECT_TRUE(CheckCold({.files = 2, .bytes = 100 * kMB, .cached_bytes = 10 * kMB}, {}));
}

TEST(CheckCold, SkipsOnlyWhereTheFileSystemHasNoDisk) {
  const CacheState kept{.files = 2, .bytes = 100 * kMB, .cached_bytes = 50 * kMB};
  EXPECT_EQ(CheckCold(kept, {.path = "d", .lives_in_memory = true}).error().code, ErrorCode::kUnsupported);
  const Status now = CheckCold(kept, {.path = "d"});
  EXPECT_EQ(now.error().code, ErrorCode::kOverloaded) << "somebody reads it at the moment";
  EXPECT_THAT(now.error().message, HasSubstr("50 of 100 MB of d"));
  EXPECT_EQ(CheckCold({.files = 2, .bytes = kMB, .unknown = 1}, {}).error().code, ErrorCode::kUnsupported);
}

TEST(CheckWarm, SkipsOnlyWhatNeverFits) {
  const CacheState half{.files = 2, .bytes = 100 * kMB, .cached_bytes = 50 * kMB};
  EXPECT_TRUE(
      CheckWarm({.files = 2, .bytes = 100 * kMB, .cached_bytes = 95 * kMB}, {.memory_bytes = 64 * kMB}));
  EXPECT_TRUE(CheckWarm({.files = 2, .bytes = 100 * kMB, .unknown = 2}, {})) << "it was read";
  EXPECT_EQ(CheckWarm(half, {.path = "d", .memory_bytes = 64 * kMB}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(CheckWarm(half, {.path = "d", .memory_bytes = 4096 * kMB}).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(CheckWarm(half, {.path = "d"}).error().code, ErrorCode::kOverloaded);
}

}  // namespace
}  // namespace weir::trial
