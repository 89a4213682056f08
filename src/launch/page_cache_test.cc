#include "launch/page_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "launch/testing/temporary_folder.h"

namespace weir::launch {
namespace {

constexpr uint64_t kSize = 1 << 20;

// In the build folder, where the disk is: a folder for temporary files may live in memory.
class PageCacheTest : public ::testing::Test {
 protected:
  std::string MakeFile(const std::string& name) {
    std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << std::string(kSize, 'x');
    return path;
  }
  // Nothing where the file system keeps its files in memory alone.
  bool CanForget() {
    const auto state = DropFromCache({MakeFile("probe")});
    return state.has_value() && state->cached_bytes == 0;
  }

  testing::TemporaryFolder folder_{"."};
};

// By mincore(2), apart from what is tested.
uint64_t CachedOf(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd.get(), 0);
  EXPECT_NE(mapped, MAP_FAILED);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(kSize / page);
  EXPECT_EQ(::mincore(mapped, kSize, resident.data()), 0);
  ::munmap(mapped, kSize);
  return page * static_cast<uint64_t>(std::ranges::count_if(resident, [](auto p) { return (p & 1) != 0; }));
}

TEST_F(PageCacheTest, ForgetsWhatWasWrittenAndRead) {
  if (!CanForget()) GTEST_SKIP() << "the file system of the working folder lives in memory";
  const std::string file = MakeFile("one");
  EXPECT_EQ(CachedOf(file), kSize) << "it was written a moment ago";

  const auto after = DropFromCache({file});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(after->files, 1);
  EXPECT_EQ(after->bytes, kSize);
  EXPECT_EQ(after->cached_bytes, 0U);
  EXPECT_EQ(CachedOf(file), 0U);

  EXPECT_EQ(ReadTextFile(file)->size(), kSize) << "and its contents are on the disk";
  EXPECT_EQ(CachedOf(file), kSize);
}

TEST_F(PageCacheTest, ReadsWhatIsNotThere) {
  if (!CanForget()) GTEST_SKIP() << "the file system of the working folder lives in memory";
  MakeFile("set/a"), MakeFile("set/below/b");
  ASSERT_EQ(DropFromCache({folder_.path() + "/set"})->cached_bytes, 0U);
  const auto state = ReadIntoCache({folder_.path() + "/set"});
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->files, 2);
  EXPECT_EQ(state->cached_bytes, 2 * kSize);
  EXPECT_EQ(CachedOf(folder_.path() + "/set/below/b"), kSize);
  EXPECT_FALSE(ReadIntoCache({folder_.path() + "/none"}));
}

TEST_F(PageCacheTest, TakesFoldersWhole) {
  if (!CanForget()) GTEST_SKIP() << "the file system of the working folder lives in memory";
  MakeFile("set/a"), MakeFile("set/below/b"), MakeFile("other");
  const auto state = DropFromCache({folder_.path() + "/set"});
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->files, 2);
  EXPECT_EQ(state->cached_bytes, 0U);
  EXPECT_EQ(CachedOf(folder_.path() + "/other"), kSize) << "not asked for";
}

TEST_F(PageCacheTest, TellsWhatARunningProgramHolds) {
  const std::string file = MakeFile("mapped");
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto state = DropFromCache({file});
  ::munmap(mapped, kSize);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->cached_bytes, kSize);
}

// mincore(2) calls every page of such a file cached.
TEST_F(PageCacheTest, CountsFilesOfWhichTheKernelDoesNotTell) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string file = MakeFile("of root");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(9);
    const auto state = DropFromCache({file});
    ::_exit(state ? static_cast<int>(state->unknown) : 8);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 8) GTEST_SKIP() << "the working folder is not to be read by others";
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(PageCacheTest, OfAnEmptyFileHasNothingToForget) {
  const std::string file = folder_.path() + "/empty";
  {
    const std::ofstream made(file);
  }
  const auto state = DropFromCache({file});
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(state->files, 1);
  EXPECT_EQ(state->bytes, 0U);
}

TEST_F(PageCacheTest, NamesWhatIsNotThereOrNoFile) {
  const auto missing = DropFromCache({"/no/such/file"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "/no/such/file: No such file or directory");
  EXPECT_EQ(DropFromCache({"/dev/null"}).error().message,
            "/dev/null: neither a file nor a folder: it has no page cache");
}

}  // namespace
}  // namespace weir::launch
