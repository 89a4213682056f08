#include "trial/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace weir::trial {
namespace {

using testing::HasSubstr;

class PlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "places_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeFolders(folder_ + "/models/tiny"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(PlacesTest, FindsWhatLiesBesideTheStudyFirst) {
  EXPECT_EQ(FindBeside("models/tiny", folder_), folder_ + "/models/tiny");
  EXPECT_EQ(FindBeside("models/large", folder_), "models/large") << "of the working folder, if anywhere";
  EXPECT_EQ(FindBeside("models/tiny", ""), "models/tiny");
}

TEST_F(PlacesTest, LeavesAloneWhatIsNoRelativePath) {
  for (const std::string name : {"", "http://127.0.0.1:8000/m", "/models/tiny"})
    EXPECT_EQ(FindBeside(name, folder_), name);
}

TEST_F(PlacesTest, NamesBothPlacesWhereItIsInNeither) {
  EXPECT_TRUE(CheckIsThere("model", "models/tiny", folder_));
  EXPECT_TRUE(CheckIsThere("data", "", folder_));
  const Status missing = CheckIsThere("model", "models/large", folder_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message,
              HasSubstr("model: models/large is neither beside the study file (" + folder_));
  EXPECT_THAT(CheckIsThere("data", "/no/such", folder_).error().message, HasSubstr("/no/such is not there"));
}

}  // namespace
}  // namespace weir::trial
