#include "http/memory_release.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

constexpr uint64_t kMiB = 1 << 20;
const Instant kStart(100s);

TEST(MemoryRelease, IsDueOnceWhenItHasBeenQuietAfterMuchWasReceived) {
  MemoryRelease release;
  EXPECT_FALSE(release.IsDue(60 * kMiB, 60 * kMiB, kStart));
  EXPECT_FALSE(release.pending());
  EXPECT_FALSE(release.IsDue(60 * kMiB, 10 * kMiB, kStart + 1s));
  EXPECT_TRUE(release.pending());
  EXPECT_FALSE(release.IsDue(0, 0, kStart + 2s));
  EXPECT_FALSE(release.IsDue(0, 100, kStart + 2900ms));
  EXPECT_TRUE(release.IsDue(0, 0, kStart + 3s));
  EXPECT_FALSE(release.pending());
  EXPECT_FALSE(release.IsDue(0, 0, kStart + 9s));
}

TEST(MemoryRelease, IsNotDueWhileMessagesComeOrAreHeld) {
  MemoryRelease release;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(release.IsDue(0, 10 * kMiB, kStart + i * 1s));
  for (int i = 100; i < 200; ++i) EXPECT_FALSE(release.IsDue(2 * kMiB, 0, kStart + i * 1s));
  EXPECT_TRUE(release.pending());
}

}  // namespace
}  // namespace weir::http
