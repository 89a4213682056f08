#include "cluster/user_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace weir::cluster {
namespace {

using testing::HasSubstr;

TEST(UserToken, IsMadeOnceForThisUserAlone) {
  const TemporaryFolder folder = *TemporaryFolder::Make("token");
  const auto first = UserToken(folder.path());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->size(), 64);
  EXPECT_EQ(UserToken(folder.path()), first);
  struct stat facts{};
  ASSERT_EQ(::stat((folder.path() + "/agent-token").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(UserToken, ThatOthersMayReadIsNone) {
  const TemporaryFolder folder = *TemporaryFolder::Make("token");
  ASSERT_TRUE(UserToken(folder.path()));
  ASSERT_EQ(::chmod((folder.path() + "/agent-token").c_str(), 0644), 0);
  const auto open = UserToken(folder.path());
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("remove it"));
}

TEST(UserToken, IsNoLinkOfAnother) {
  const TemporaryFolder folder = *TemporaryFolder::Make("token");
  ASSERT_TRUE(WriteFileWhole(folder.path() + "/other", std::string(32, 'a')));
  std::filesystem::create_symlink(folder.path() + "/other", folder.path() + "/agent-token");
  EXPECT_FALSE(UserToken(folder.path()));
}

TEST(RuntimeFolder, IsTheUsersOwn) {
  const TemporaryFolder folder = *TemporaryFolder::Make("runtime");
  const auto environment = [&](const char*) { return folder.path().c_str(); };
  EXPECT_EQ(RuntimeFolder(environment), folder.path() + "/weir");
  ASSERT_EQ(::chmod((folder.path() + "/weir").c_str(), 0777), 0);
  const auto open = RuntimeFolder(environment);
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("--token-file"));
}

}  // namespace
}  // namespace weir::cluster
