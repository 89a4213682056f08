#include "base/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"

namespace weir {
namespace {

TEST(TemporaryFolder, GoesWithAllThatIsInIt) {
  std::string path;
  {
    const auto folder = TemporaryFolder::Make("weir-test");
    ASSERT_TRUE(folder);
    path = folder->path();
    ASSERT_TRUE(MakeFolders(path + "/a/b"));
    ASSERT_TRUE(WriteFileWhole(path + "/a/b/c", "text"));
    EXPECT_TRUE(std::filesystem::exists(path + "/a/b/c"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, GoesOnceThoughItIsMoved) {
  auto made = TemporaryFolder::Make("weir-test");
  ASSERT_TRUE(made);
  const std::string path = made->path();
  std::optional<TemporaryFolder> holder(std::move(*made));
  EXPECT_TRUE(std::filesystem::exists(path));
  holder.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace weir
