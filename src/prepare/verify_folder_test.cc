#include "prepare/verify_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "prepare/variations.h"

namespace weir::prepare {
namespace {

using testing::HasSubstr;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "verify_folder_test." + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeFolders(folder_ + "/resnet50"));
    constexpr const char* kRecipe = "resize: {width: 8, height: 8}\n";
    ASSERT_TRUE(WriteFileWhole(folder_ + "/small.yaml", kRecipe));
    ASSERT_TRUE(WriteFileWhole(folder_ + "/resnet50/recipe.yaml", kRecipe));
    ASSERT_TRUE(WriteFileWhole(folder_ + "/a,b.yaml", kRecipe));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FolderTest, AFolderWithoutASetIsNotVerified) {
  const auto result = VerifyFolder(folder_, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("no finished set"));
}

TEST_F(FolderTest, AModelsRecipeIsNamedAfterItsFolder) {
  const auto variations = ReadVariations(folder_ + "/small.yaml," + folder_ + "/resnet50/recipe.yaml");
  ASSERT_TRUE(variations) << variations.error().message;
  ASSERT_EQ(variations->size(), 2u);
  EXPECT_EQ((*variations)[0].name, "small");
  EXPECT_EQ((*variations)[1].name, "resnet50");
}

TEST_F(FolderTest, AFileWithACommaInItsNameIsOneRecipe) {
  const auto variations = ReadVariations(folder_ + "/a,b.yaml");
  ASSERT_TRUE(variations) << variations.error().message;
  EXPECT_EQ(variations->front().name, "a,b");
}

TEST(VerifyText, NamesTheFaultsFoundFirst) {
  const results::VerifyResult result{
      .faults = 1,
      .sets = {{.folder = "set", .images = 2, .bytes = 10, .faults = 1, .examples = {"a.jpg: hash"}}}};
  EXPECT_THAT(VerifyText(result), HasSubstr("set: a.jpg: hash\nset: 2 pictures, 10"));
  EXPECT_THAT(VerifyText(result), HasSubstr("1 fault"));
}

}  // namespace
}  // namespace weir::prepare
