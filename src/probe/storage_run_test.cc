#include "probe/storage_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace weir::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StorageRun : public testing::Test {
 protected:
  StorageRun() {
    std::filesystem::create_directories(folder_);
    request_.paths = {folder_};
    request_.made = {.samples = 8, .mean_bytes = 1000, .least_free_share = 0};
    request_.steps = 2;
    request_.step_ms = 0;
    request_.repeats = 1;
    request_.threads = 2;
    request_.warm = true;
    request_.limit_s = 0.05;
  }
  ~StorageRun() override { std::filesystem::remove_all(folder_); }

  Result<StorageAnswer> Play() {
    const StorageProfile profile = TRY(FindDemand(request_, hooks_, clock_));
    return RunStorageProbe(request_, profile, hooks_, clock_, {}, sets_);
  }

  const std::string folder_ =
      testing::TempDir() + fmt::format("storage_run_{}_{}", ::getpid(),
                                       testing::UnitTest::GetInstance()->current_test_info()->name());
  const SteadyClock clock_;
  StorageRequest request_;
  std::vector<std::string> notes_;
  int ended_ = 0;
  StorageHooks hooks_{.note = [this](const std::string& line) { notes_.push_back(line); },
                      .progress = [](double, int64_t, const std::string&) {},
                      .progress_ended = [this] { ++ended_; },
                      .prepare = {},
                      .draw = {},
                      .predict_step = {}};
  std::optional<ProbedSets> sets_;
};

TEST_F(StorageRun, WritesASetPlaysAndRemovesIt) {
  const auto answer = Play();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_FALSE(answer->hung);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("removed at the end")));
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(sets_->samples().size(), 8U);
  ASSERT_EQ(sets_->units().size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(sets_->work()));
  sets_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StorageRun, TheUsersFilesAreReadAndStay) {
  request_.set = folder_ + "/mine";
  ASSERT_TRUE(MakeFolders(request_.set).has_value());
  ASSERT_TRUE(WriteFileWhole(request_.set + "/a", std::string(5000, 'a')).has_value());
  request_.phase = StoragePhase::kStream;
  const auto answer = Play();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_THAT(notes_, ElementsAre());
  sets_.reset();
  EXPECT_TRUE(std::filesystem::exists(request_.set + "/a"));
}

TEST_F(StorageRun, AllPlaysItsPhasesInTurnAndGivesOriginalsToTheHook) {
  request_.phase = StoragePhase::kAll;
  request_.made.mean_bytes = 0;
  int64_t asked = 0;
  hooks_.draw = [](Seed, int) -> Result<std::vector<std::string>> {
    // A JPEG picture's first and last marker: the set puts a comment after the first.
    return std::vector<std::string>{std::string("\xFF\xD8\xFF\xD9", 4)};
  };
  hooks_.prepare = [&](int64_t count, const ReadOriginal& read, const std::string&, std::stop_token,
                       const std::function<void()>& moved) -> Result<EtlFigures> {
    asked = count;
    for (int64_t i = 0; i < count; ++i) {
      TRY(read(i));
      moved();
    }
    return EtlFigures{.images = count, .wall = 1ms};
  };
  const auto answer = Play();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(answer->result.phases.size(), 3U);
}

TEST_F(StorageRun, TheStepOfACardIsPublishedOrPredicted) {
  request_.step_ms = -1;
  request_.accelerators = "1xh100";
  request_.profile = "resnet50";
  const auto published = FindDemand(request_, hooks_, clock_);
  ASSERT_TRUE(published.has_value()) << published.error().message;
  EXPECT_GT(published->step, Duration{});
  EXPECT_EQ(notes_.size(), 1U);
  request_.profile.clear();
  request_.predictor = "train.json";
  request_.batch = 16;
  hooks_.predict_step = [](const AskedCard& card, int batch,
                           std::vector<std::string>& notes) -> Result<Duration> {
    notes.push_back(card.card + " of " + card.predictor);
    return batch * 1ms;
  };
  const auto predicted = FindDemand(request_, hooks_, clock_);
  ASSERT_TRUE(predicted.has_value()) << predicted.error().message;
  EXPECT_EQ(predicted->step, 16ms);
  EXPECT_EQ(notes_.back(), "h100 of train.json");
}

}  // namespace
}  // namespace weir::probe
