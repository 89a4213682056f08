#include "serve/repository_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace weir::serve {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RepositoryScanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(::testing::TempDir()) / ("scan-" + std::to_string(::getpid()));
    fs::remove_all(base_);
    Write("a/1/model.onnx", "one");
    Write("b/1/model.onnx", "two");
  }
  void TearDown() override { fs::remove_all(base_); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((base_ / name).parent_path());
    std::ofstream(base_ / name) << text;
  }
  RepositoryScan Create() const { return *RepositoryScan::Create(*Catalogue::Open({base_.string()})); }
  static RepositoryScan::Changes Look(RepositoryScan& scan) {
    auto changes = scan.Look();
    EXPECT_TRUE(changes.has_value()) << changes.error().message;
    return *changes;
  }

  fs::path base_;
};

TEST_F(RepositoryScanTest, FindsNothingWhereNothingChanged) {
  RepositoryScan scan = Create();
  for (int i = 0; i < 3; ++i) {
    const auto changes = Look(scan);
    EXPECT_THAT(changes.changed, IsEmpty());
    EXPECT_THAT(changes.gone, IsEmpty());
  }
}

TEST_F(RepositoryScanTest, FindsANewModelAtTheSecondLook) {
  RepositoryScan scan = Create();
  Write("c/1/model.onnx", "three");
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  EXPECT_THAT(Look(scan).changed, ElementsAre("c"));
  EXPECT_THAT(Look(scan).changed, IsEmpty());
}

TEST_F(RepositoryScanTest, LeavesAloneWhatIsStillBeingCopied) {
  RepositoryScan scan = Create();
  Write("c/1/model.onnx", "t");
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  Write("c/1/model.onnx", "thr");
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  Write("c/1/model.onnx", "three");
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  EXPECT_THAT(Look(scan).changed, ElementsAre("c"));
}

TEST_F(RepositoryScanTest, FindsANewVersionAndAFileOfTheSameSize) {
  RepositoryScan scan = Create();
  Write("a/2/model.onnx", "new");
  fs::last_write_time(base_ / "b/1/model.onnx", fs::file_time_type(std::chrono::hours(1)));
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  EXPECT_THAT(Look(scan).changed, ElementsAre("a", "b"));
}

TEST_F(RepositoryScanTest, FindsWhatIsGoneAtTheSecondLookAndWhenItIsBack) {
  RepositoryScan scan = Create();
  fs::rename(base_ / "b", base_ / ".b");
  EXPECT_THAT(Look(scan).gone, IsEmpty());
  EXPECT_THAT(Look(scan).gone, ElementsAre("b"));
  EXPECT_THAT(Look(scan).gone, IsEmpty());
  fs::rename(base_ / ".b", base_ / "b");
  EXPECT_THAT(Look(scan).changed, IsEmpty());
  EXPECT_THAT(Look(scan).changed, ElementsAre("b"));
}

TEST_F(RepositoryScanTest, TakesAModelThatIsReplacedBetweenTwoLooksAsTheOneThatWasThere) {
  RepositoryScan scan = Create();
  fs::rename(base_ / "b", base_ / ".b");
  EXPECT_THAT(Look(scan).gone, IsEmpty());
  fs::rename(base_ / ".b", base_ / "b");
  const auto changes = Look(scan);
  EXPECT_THAT(changes.changed, IsEmpty());
  EXPECT_THAT(changes.gone, IsEmpty());
}

TEST_F(RepositoryScanTest, ReportsARepositoryThatIsGoneAndTakesNoModelAsGone) {
  RepositoryScan scan = Create();
  const fs::path away = base_.string() + "-away";
  fs::rename(base_, away);
  for (int i = 0; i < 3; ++i) {
    const auto changes = scan.Look();
    ASSERT_FALSE(changes.has_value());
    EXPECT_EQ(changes.error().code, ErrorCode::kNotFound);
  }
  fs::rename(away, base_);
  EXPECT_THAT(Look(scan).gone, IsEmpty());
  EXPECT_THAT(Look(scan).changed, IsEmpty());
}

}  // namespace
}  // namespace weir::serve
