#include "feed/uring_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <map>
#include <string>

#include "base/file.h"
#include "base/mutex.h"

namespace weir::feed {
namespace {

class UringReadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "/feed_uring." + std::to_string(::getpid());
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // Reads samples 0 to count - 1 and returns each one's bytes as text, or its reject.
  std::map<int64_t, std::string> ReadAll(int depth, int64_t count,
                                         std::function<FilePlace(int64_t)> place_of) {
    auto reads = MakeUringReads(depth, std::move(place_of));
    if (!reads) return {};
    Mutex mutex;
    std::map<int64_t, std::string> read;
    std::latch all(count);
    for (int64_t i = 0; i < count; ++i) {
      (*reads)->Start(i, [&, i](image::Accepted<Bytes> bytes) {
        const MutexLock lock(mutex);
        read[i] = bytes ? std::string(bytes->text()) : std::string(image::ToString(bytes.error().reason));
        all.count_down();
      });
    }
    all.wait();
    return read;
  }
  std::string root_;
};

TEST_F(UringReadsTest, GiveFilesAndPartsOfFiles) {
  if (const auto reads = MakeUringReads(1, {}); !reads) GTEST_SKIP() << reads.error().message;
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(
        WriteFileWhole(root_ + "/" + std::to_string(i), std::string(static_cast<size_t>(i) * 1000, 'a')));
  ASSERT_EQ(::mkfifo((root_ + "/40").c_str(), 0644), 0);
  std::filesystem::create_directories(root_ + "/41");
  for (const int depth : {1, 3, 64}) {
    const auto read =
        ReadAll(depth, 43, [&](int64_t i) { return FilePlace{.path = root_ + "/" + std::to_string(i)}; });
    ASSERT_EQ(read.size(), 43u);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(read.at(i), std::string(static_cast<size_t>(i) * 1000, 'a'));
    EXPECT_EQ(read.at(40), "not-a-file");
    EXPECT_EQ(read.at(41), "not-a-file");
    EXPECT_EQ(read.at(42), "vanished");
  }
  ASSERT_TRUE(WriteFileWhole(root_ + "/shard", "0123456789"));
  const UniqueFd shard(::open((root_ + "/shard").c_str(), O_RDONLY | O_CLOEXEC));
  const auto read = ReadAll(2, 3, [&](int64_t i) {
    return FilePlace{.path = root_ + "/shard", .fd = shard.get(), .offset = 4 * i, .bytes = 4};
  });
  EXPECT_EQ(read.at(0), "0123");
  EXPECT_EQ(read.at(1), "4567");
  EXPECT_EQ(read.at(2), "vanished");
}

TEST_F(UringReadsTest, LetGoOfEveryFunctionWhenTheyEnd) {
  auto reads = MakeUringReads(4, [&](int64_t) { return FilePlace{.path = root_ + "/none"}; });
  if (!reads) GTEST_SKIP() << reads.error().message;
  const auto called = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 100; ++i) (*reads)->Start(i, [called](image::Accepted<Bytes>) { ++*called; });
  reads->reset();
  EXPECT_EQ(called.use_count(), 1);
  EXPECT_LE(*called, 100);
}

}  // namespace
}  // namespace weir::feed
