#include "run/reporter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace weir::run {
namespace {

class Lines final : public AnswerSink {
 public:
  void Answered(const dataset::Input& input, const std::vector<Answer>& answers) override {
    told.push_back(fmt::format("{}: {}", input.name, answers.front().class_index));
  }
  void Rejected(const dataset::Input& input, const image::Reject& reject) override {
    told.push_back(fmt::format("{}: {}", input.name, ToString(reject.reason)));
  }
  std::vector<std::string> told;
};

std::vector<Answer> Ranked(std::initializer_list<int> classes) {
  std::vector<Answer> answers;
  for (const int c : classes) answers.push_back({.class_index = c, .score = 1});
  return answers;
}

TEST(Reporter, TellsInTheOrderOfTheInputWhateverComesFirst) {
  const ManualClock clock;
  dataset::Listing listing;
  for (const char* name : {"a", "b", "c"}) listing.inputs.push_back({.name = name});
  Lines lines;
  Report report;
  Reporter reporter(listing, clock, lines, report);
  reporter.Add(1, {{}, Ranked({7})});
  EXPECT_EQ(reporter.TellDue(), 0);
  reporter.Add(0, {{}, image::Reject{image::RejectReason::kEmpty, "no bytes"}});
  EXPECT_EQ(reporter.TellDue(), 2);
  reporter.Add(4, {{}, Ranked({9})});  // "b" in the second pass
  EXPECT_EQ(reporter.TellDue(), 0);
  EXPECT_EQ(reporter.told(), 2);
  reporter.TellRest();
  EXPECT_EQ(lines.told, (std::vector<std::string>{"a: empty", "b: 7", "b: 9"}));
  EXPECT_EQ(report.images, 2);
  EXPECT_EQ(report.rejected.total, 1);
  EXPECT_EQ(report.failed, 0);
}

TEST(Reporter, CountsHitsAmongTheFirstFive) {
  const ManualClock clock;
  dataset::Listing listing;
  listing.inputs = {{.name = "first", .label = 1},
                    {.name = "fifth", .label = 1},
                    {.name = "sixth", .label = 1},
                    {.name = "unknown"}};
  Lines lines;
  Report report;
  Reporter reporter(listing, clock, lines, report);
  reporter.Add(0, {{}, Ranked({1, 2, 3})});
  reporter.Add(1, {{}, Ranked({2, 3, 4, 5, 1, 6})});
  reporter.Add(2, {{}, Ranked({2, 3, 4, 5, 6, 1})});
  reporter.Add(3, {{}, Ranked({1})});
  EXPECT_EQ(reporter.TellDue(), 4);
  EXPECT_EQ(report.labelled, 3);
  EXPECT_EQ(report.top1_hits, 1);
  EXPECT_EQ(report.top5_hits, 2);
}

TEST(Reporter, KeepsTheFirstTwentyRejectsEachOnce) {
  const ManualClock clock;
  dataset::Listing listing;
  for (int i = 0; i < 30; ++i) listing.inputs.push_back({.name = fmt::format("{}", i)});
  Lines lines;
  Report report;
  Reporter reporter(listing, clock, lines, report);
  for (int i = 0; i < 60; ++i) reporter.Add(i, {{}, image::Reject{image::RejectReason::kFailed, "no"}});
  EXPECT_EQ(reporter.TellDue(), 60);
  EXPECT_EQ(report.rejected.total, 60);
  EXPECT_EQ(report.failed, 60);
  EXPECT_EQ(report.rejected.by_reason.at("failed"), 60);
  ASSERT_EQ(report.rejected.first.size(), 20U);
  EXPECT_EQ(report.rejected.first.back().first, "19");
}

TEST(StageTimes, AddTheEventsOfADeviceWhereOneTells) {
  StageTimes times;
  times.Add({});
  EXPECT_EQ(times.device, std::nullopt);
  Stamps stamps;
  stamps.device = infer::DeviceStages{
      .upload = std::chrono::microseconds(1), .compute = std::chrono::microseconds(5), .download = {}};
  times.Add(stamps);
  times.Add(stamps);
  EXPECT_EQ(times.device->upload, std::chrono::microseconds(2));
  EXPECT_EQ(times.device->compute, std::chrono::microseconds(10));
}

}  // namespace
}  // namespace weir::run
