#include "base/named_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/text_style.h"

namespace weir {
namespace {

using testing::HasSubstr;

class NamedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "named_file_test." + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeFolders(folder_ + "/in"));
    ASSERT_TRUE(WriteFileWhole(folder_ + "/rows.csv", "a\n"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(NamedFileTest, AnOutputMayNotBeAnInput) {
  std::filesystem::create_symlink(folder_ + "/rows.csv", folder_ + "/link");
  for (const char* output : {"/rows.csv", "/in/../rows.csv", "/link"}) {
    const Status apart = CheckApart({{"--in", folder_ + "/rows.csv"}}, {{"--out", folder_ + output}});
    ASSERT_FALSE(apart) << output;
    EXPECT_THAT(apart.error().message, HasSubstr("--in and --out are one file"));
  }
}

TEST_F(NamedFileTest, AnOutputMayNotLieInAnInputFolder) {
  EXPECT_FALSE(CheckApart({{"DATA", folder_ + "/in"}}, {{"--json", folder_ + "/in/new.json"}}));
  EXPECT_TRUE(CheckApart({{"DATA", folder_ + "/in"}}, {{"--json", folder_ + "/inner.json"}}));
}

TEST_F(NamedFileTest, TwoOutputsMayNotBeOneFile) {
  EXPECT_FALSE(CheckApart({}, {{"--json", folder_ + "/new"}, {"--html", folder_ + "/in/../new"}}));
  EXPECT_TRUE(CheckApart({}, {{"--json", "-"}, {"--html", "-"}, {"--csv", ""}, {"--out", ""}}));
}

TEST_F(NamedFileTest, AFolderIsNotInsideItself) {
  EXPECT_TRUE(LiesInside(folder_ + "/in/absent/file", folder_ + "/in"));
  EXPECT_FALSE(LiesInside(folder_ + "/in", folder_ + "/in"));
  EXPECT_FALSE(LiesInside(folder_ + "/inner", folder_ + "/in"));
}

TEST(TextStyle, KeepsBoldAndEscapesTheRest) {
  EXPECT_EQ(TextStyle(true).ForTerminal("\x1b[1mname\x1b[0m \x1b[31m\\x00"),
            "\x1b[1mname\x1b[0m \\x1B[31m\\x00");
  EXPECT_EQ(TextStyle(false).ForTerminal("\x1b[1mname"), "\\x1B[1mname");
}

}  // namespace
}  // namespace weir
