#include "predict/fit_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "predict/predictor.h"
#include "predict/testing/made_set.h"

namespace weir::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FitSession : public testing::Test {
 protected:
  FitSession() {
    const auto spec = MadeSet::Make().WriteTo(folder_);
    request_ = {
        .specs = {spec.value_or("")}, .data_dir = folder_, .fit = {.estimator = "physical", .threads = 2}};
  }
  ~FitSession() override { std::filesystem::remove_all(folder_); }

  Result<results::FitsResult> Fit() {
    return FitSpecs(request_,
                    {.fitted = [this](const results::FitResult& result) { fitted_.push_back(result.name); },
                     .failed = [this](const Error& error) { failed_.push_back(error.message); },
                     .write_page = [this](const results::FitResult&, const std::string& file) -> Status {
                       pages_.push_back(file);
                       return {};
                     },
                     .progress = [](double, const std::string&, int64_t, int64_t) {},
                     .progress_ended = [] {}},
                    clock_);
  }
  std::string Refusal() const {
    const Status status = CheckFitRequest(request_);
    return status ? "" : status.error().message;
  }

  const std::string folder_ =
      testing::TempDir() + fmt::format("fit_session_{}_{}", ::getpid(),
                                       testing::UnitTest::GetInstance()->current_test_info()->name());
  const SteadyClock clock_;
  FitRequest request_;
  std::vector<std::string> fitted_, failed_, pages_;
};

TEST_F(FitSession, WritesThePredictorOfOneSpec) {
  request_.output = folder_ + "/one.json";
  ASSERT_EQ(Refusal(), "");
  const auto result = Fit();
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(Predictor::Load(*ReadTextFile(request_.output)).has_value());
  EXPECT_EQ(result->only->predictor, request_.output);
  EXPECT_EQ(result->only->estimator, "physical");
  EXPECT_EQ(fitted_.size(), 1U);
  EXPECT_THAT(pages_, ElementsAre());
}

TEST_F(FitSession, ASpecThatFailsDoesNotStopTheOthers) {
  request_.specs.insert(request_.specs.begin(), folder_ + "/absent.yaml");
  request_.output = folder_ + "/out";
  request_.html = folder_ + "/pages";
  const std::string name = NameOfSpec(request_.specs.back());
  ASSERT_TRUE(MakeFitFolders(request_).has_value());
  const auto result = Fit();
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(failed_, ElementsAre(HasSubstr("absent.yaml")));
  ASSERT_EQ(result->fits->size(), 1U);
  EXPECT_EQ(result->fits->front().predictor, folder_ + "/out/" + name + ".json");
  EXPECT_THAT(pages_, ElementsAre(folder_ + "/pages/" + name + ".html"));
}

TEST_F(FitSession, ACheckWritesNothing) {
  request_.check = true;
  ASSERT_EQ(Refusal(), "");
  const auto result = Fit();
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(result->only->usable.has_value());
  EXPECT_FALSE(result->only->predictor.has_value());
}

TEST_F(FitSession, RefusesPathsThatContradict) {
  EXPECT_THAT(Refusal(), HasSubstr("say where the predictor goes"));
  request_.output = request_.specs.front();
  EXPECT_THAT(Refusal(), HasSubstr("SPEC and -o are one file"));
  request_.check = true;
  EXPECT_THAT(Refusal(), HasSubstr("leave out -o and --html"));
  request_.check = false;
  request_.specs.push_back("elsewhere/" + NameOfSpec(request_.specs.front()) + ".yaml");
  EXPECT_THAT(Refusal(), HasSubstr("is a file, and the predictors of 2 SPECs"));
  request_.output = folder_ + "/out";
  EXPECT_THAT(Refusal(), HasSubstr("two SPECs are called"));
}

TEST(NameOfSpec, IsTheFileOrTheFolder) {
  EXPECT_EQ(NameOfSpec("a/train.yaml"), "train");
  EXPECT_EQ(NameOfSpec("quick/"), "quick");
}

}  // namespace
}  // namespace weir::predict
