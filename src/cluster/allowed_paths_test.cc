#include "cluster/allowed_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace weir::cluster {
namespace {

using testing::HasSubstr;

class AllowedPathsTest : public testing::Test {
 protected:
  AllowedPathsTest() {
    CHECK(MakeFolders(root_ + "/in/below"));
    CHECK(MakeFolders(root_ + "/inner"));
    std::filesystem::create_directory_symlink("/etc", root_ + "/in/out");
    std::filesystem::create_directory_symlink(root_ + "/in", root_ + "/alias");
  }
  const TemporaryFolder folder_ = *TemporaryFolder::Make("allowed");
  const std::string root_ = folder_.path();
};

TEST_F(AllowedPathsTest, AreNoneByDefault) {
  const Status refused = AllowedPaths().Check("--body", "/etc/passwd");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("--body '/etc/passwd'"));
  EXPECT_THAT(refused.error().message, HasSubstr("--allow-path DIR"));
  EXPECT_TRUE(AllowedPaths().Check("--body", ""));
}

TEST_F(AllowedPathsTest, AreThoseBelowAFolderWhateverTheirNames) {
  const AllowedPaths allowed = *AllowedPaths::Make({root_ + "/in/"});
  for (const char* path : {"/in", "/in/a", "/in/not/yet", "/in/below/../b", "/alias/a", "/inner/../in/x"})
    EXPECT_TRUE(allowed.Check("PATH", root_ + path)) << path;
  for (const char* path : {"", "/inner", "/in/../inner", "/in/out/passwd", "/in/out", "/in/below/../../x"})
    EXPECT_FALSE(allowed.Check("PATH", root_ + path + "/")) << path;
  EXPECT_FALSE(allowed.Check("PATH", root_ + "/in/a" + std::string("\0/../../inner", 13)));
  EXPECT_FALSE(allowed.Check("PATH", "etc/passwd"));
  EXPECT_FALSE(allowed.Check("PATH", "s3://bucket/" + root_ + "/in"));
}

TEST_F(AllowedPathsTest, MayBeOfAStore) {
  const AllowedPaths allowed = *AllowedPaths::Make({"s3://bucket/set"});
  EXPECT_TRUE(allowed.Check("SET", "s3://bucket/set"));
  EXPECT_TRUE(allowed.Check("SET", "s3://bucket/set/a"));
  for (const char* url : {"s3://bucket/settle", "s3://bucket/set/../other", "s3://bucket", "s3://other/set",
                          "http://bucket/set", "s3://bucket/set/%2e%2e/x"})
    EXPECT_FALSE(allowed.Check("SET", url)) << url;
}

TEST_F(AllowedPathsTest, AreAllBelowTheRoot) {
  const AllowedPaths allowed = *AllowedPaths::Make({"/"});
  for (const char* path : {"/etc/passwd", "relative", "s3://bucket/x", "http://host/x?y"})
    EXPECT_TRUE(allowed.Check("PATH", path)) << path;
}

TEST_F(AllowedPathsTest, AreFoldersThatAreThere) {
  EXPECT_FALSE(AllowedPaths::Make({root_ + "/none"}));
  EXPECT_FALSE(AllowedPaths::Make({""}));
}

}  // namespace
}  // namespace weir::cluster
