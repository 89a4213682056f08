#include "advise/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace weir::advise {
namespace {

using testing::HasSubstr;

constexpr const char* kStudy =
    "study: s\nmodel: m\ndata: d\nfactors: {batch: [1, 8]}\nrepeats: 6\n"
    "fixed: {architecture: in-process, engine: \"emulated:base=1ms\"}\n";

class Session : public testing::Test {
 protected:
  Session() {
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(WriteFileWhole(folder_ + "/study.yaml", kStudy));
  }
  ~Session() override { std::filesystem::remove_all(folder_); }

  std::string ErrorOf(const AdviseRequest& request) {
    const ManualClock clock;
    const auto end = Advise(request, TextStyle(false), clock, {}, {});
    return end ? "no error" : end.error().message;
  }

  const std::string folder_ =
      testing::TempDir() + "advise_session_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(GoalOf, TakesTheStudysTargetUnlessOneIsGiven) {
  study::Targets study;
  study.p99_ms = 20;
  study.price_per_hour = {{"microservice", 1.5}};
  const Goal own = *GoalOf({.rate = 300}, study);
  EXPECT_EQ(own.targets.at(0).limit, 20);
  EXPECT_EQ(own.rate, 300);
  EXPECT_EQ(own.price_per_hour.at("microservice"), 1.5);
  const Goal given = *GoalOf({.targets = {"p99<15ms"}, .prices = {"microservice=2"}}, study);
  ASSERT_EQ(given.targets.size(), 1U);
  EXPECT_EQ(given.targets[0].limit, 15);
  EXPECT_EQ(given.price_per_hour.at("microservice"), 2);
  EXPECT_FALSE(GoalOf({.targets = {"p99"}}, study));
}

TEST_F(Session, ASearchWantsAFolder) {
  EXPECT_THAT(ErrorOf({.source = folder_ + "/study.yaml"}), HasSubstr("-o DIR"));
}

TEST_F(Session, HardwareWantsAStudyFile) {
  EXPECT_THAT(ErrorOf({.source = folder_, .accelerators = {.names = "a", .predictor = "p.json"}}),
              HasSubstr("give the study file"));
}

TEST_F(Session, AFolderWithoutAStudyIsAnError) {
  EXPECT_THAT(ErrorOf({.source = folder_}), HasSubstr(folder_));
}

TEST(CheckAskedAccelerators, NamesWhatIsMissing) {
  EXPECT_THAT(CheckAskedAccelerators({.predictor = "p.json"}).error().message, HasSubstr("--hardware A,B"));
  EXPECT_THAT(CheckAskedAccelerators({.names = "a"}).error().message, HasSubstr("--predictor FILE"));
  EXPECT_THAT(CheckAskedAccelerators({.names = ",", .predictor = "p"}).error().message,
              HasSubstr("no accelerator"));
  EXPECT_TRUE(CheckAskedAccelerators({.names = "a", .predictor = "p"}));
}

}  // namespace
}  // namespace weir::advise
