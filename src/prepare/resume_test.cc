// A making that is broken off, and gone on with.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <utility>

#include "dataset/verify.h"
#include "prepare/checkpoint.h"
#include "prepare/join.h"
#include "prepare/part.h"
#include "prepare/prepare.h"
#include "prepare/testing/pictures.h"

namespace weir::prepare {
namespace {

using ::testing::HasSubstr;
using testing_pictures::kFormats;
using testing_pictures::MakeFeed;
using testing_pictures::ReadAll;

class ResumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        ::testing::TempDir() + "resume_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  Options OptionsFor(dataset::SetFormat format, const std::string& name) const {
    return {.folder = Path(name),
            .format = format,
            .geometry = dataset::Geometry{.short_side = 32, .crop = dataset::Size{24, 24}},
            .shard_bytes = 20'000,
            .reject_duplicates = true,
            .replicate = 50,
            .workers = 2,
            .checkpoint_every = 0ms};
  }
  Result<PrepareSummary> Prepare(const Feed& feed, const Options& options) {
    return PrepareSet(feed, options, clock_, {}, {});
  }
  // Ends the making behind its `after`th picture.
  Error StopAfter(int64_t after, const Feed& feed, const Options& options) {
    std::stop_source stop;
    int64_t done = 0;
    const auto summary = PrepareSet(feed, options, clock_, stop.get_token(), [&](const Progress&) {
      if (++done == after) stop.request_stop();
    });
    return summary ? Error{ErrorCode::kInternal, "finished"} : summary.error();
  }

  SteadyClock clock_;
  std::string folder_;
};

TEST_F(ResumeTest, AStoppedMakingGoesOnAndEndsWithTheSameBytes) {
  const Feed feed = MakeFeed(40);
  for (const auto format : kFormats) {
    const Options options = OptionsFor(format, "whole");
    ASSERT_TRUE(Prepare(feed, options));
    const auto whole = ReadAll(Path("whole"));
    EXPECT_FALSE(whole.contains(Checkpoints::kFileName));
    for (const int64_t after : {1, 7, 23, 39, 40, 45}) {
      const Options broken = OptionsFor(format, "broken");
      EXPECT_EQ(StopAfter(after, feed, broken).code, ErrorCode::kCancelled) << after;
      EXPECT_FALSE(dataset::PreparedSet::IsSet(Path("broken")));
      const auto summary = Prepare(feed, broken);
      ASSERT_TRUE(summary) << summary.error().message;
      EXPECT_EQ(summary->begun_at, std::min<int64_t>(after, 40));
      EXPECT_TRUE(ReadAll(Path("broken")) == whole) << after;
      EXPECT_EQ(dataset::VerifySet(Path("broken"), {})->faults, 0);
      std::filesystem::remove_all(Path("broken"));
    }
    std::filesystem::remove_all(folder_);
  }
}

// A kill leaves these behind: files longer than the last checkpoint knows of, a torn journal, checkpoints
// whose files are not there.
TEST_F(ResumeTest, WhatStandsBehindTheLastCheckpointIsMadeAgain) {
  const Feed feed = MakeFeed(40);
  for (const auto format : kFormats) {
    ASSERT_TRUE(Prepare(feed, OptionsFor(format, "whole")));
    const auto whole = ReadAll(Path("whole"));
    const Options options = OptionsFor(format, "torn");
    StopAfter(20, feed, options);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(Path("torn"))) {
      const std::string path = entry.path();
      const bool closed = path.find("/shards/") != path.npos && !path.ends_with(".part");
      if (!entry.is_regular_file() || closed || path.find("/pictures/") != path.npos) continue;
      std::ofstream(entry.path(), std::ios::app) << "{\"torn";
    }
    std::ofstream(Path("torn") + (format == dataset::SetFormat::kFiles ? "/pictures/00000/00000030.jpg"
                                                                       : "/shards/000009.tar.part"))
        << "stale";
    ASSERT_TRUE(Prepare(feed, options));
    EXPECT_TRUE(ReadAll(Path("torn")) == whole);

    const Options lost = OptionsFor(format, "lost");
    StopAfter(20, feed, lost);
    std::filesystem::resize_file(Path("lost/manifest.jsonl"), 100);
    ASSERT_TRUE(Prepare(feed, lost));
    EXPECT_TRUE(ReadAll(Path("lost")) == whole);
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ResumeTest, OtherArgumentsAreRefused) {
  const Feed feed = MakeFeed(20);
  Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  StopAfter(5, feed, options);
  Options other = options;
  other.jpeg.quality = 80;
  EXPECT_THAT(Prepare(feed, other).error().message, HasSubstr("quality: 90 then, 80 now"));
  other = options;
  other.geometry->crop = dataset::Size{20, 20};
  EXPECT_EQ(Prepare(feed, other).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(Prepare(feed, options));
  other.geometry = options.geometry;
  other.replicate = 51;
  EXPECT_THAT(Prepare(feed, other).error().message, HasSubstr("replicate: 50 then, 51 now"));
  EXPECT_THAT(Prepare(MakeFeed(21), options).error().message, HasSubstr("20 then, 21 now"));
}

// The labels, the sample and the seed are arguments, too: another choice would throw away all that was done.
TEST_F(ResumeTest, OtherArgumentsOfTheFeedAreRefused) {
  Feed feed = MakeFeed(20);
  feed.arguments.labels = "folders";
  const Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  StopAfter(5, feed, options);
  const auto before = ReadAll(Path("set"));
  EXPECT_THAT(Prepare(MakeFeed(20), options).error().message,
              HasSubstr(R"(labels: "folders" then, nothing now)"));
  Feed other = feed;
  other.arguments.labels = "XXH3-128 0";
  EXPECT_THAT(Prepare(other, options).error().message,
              HasSubstr(R"(labels: "folders" then, "XXH3-128 0" now)"));
  EXPECT_TRUE(ReadAll(Path("set")) == before);
  EXPECT_EQ(Prepare(feed, options)->begun_at, 5);
  EXPECT_THAT(Prepare(MakeFeed(20), options).error().message, HasSubstr("labels"));
}

TEST_F(ResumeTest, WhatIsMadeAgainIsTold) {
  const Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  StopAfter(12, MakeFeed(30), options);
  Feed other = MakeFeed(30);
  other.describe = [](int64_t i) { return fmt::format("in/{}{}\n", i, i == 4 ? " changed" : ""); };
  const auto summary = Prepare(other, options).value();
  EXPECT_LE(summary.begun_at, 4);
  EXPECT_EQ(summary.begun_at + summary.made_again, 12);
}

TEST_F(ResumeTest, ASecondWorkIntoTheFolderOfVariationsIsRefused) {
  const auto with = [&](const std::string& name) {
    Options options = OptionsFor(dataset::SetFormat::kFiles, "all");
    options.geometry.reset();
    options.variations = {{name, {.crop = dataset::Size{10, 10}}}};
    return Prepare(MakeFeed(4), options);
  };
  ASSERT_TRUE(with("a"));
  EXPECT_THAT(with("b").error().message, HasSubstr("is not an empty folder"));
}

TEST_F(ResumeTest, ADuplicateNamesThePictureThatCameFirst) {
  // Input 8 is input 2, and lies in another part.
  Options options = OptionsFor(dataset::SetFormat::kTar, "whole");
  ASSERT_TRUE(Prepare(MakeFeed(31), options));
  const std::string rejects = ReadAll(Path("whole")).at("rejects.jsonl");
  EXPECT_THAT(
      rejects,
      HasSubstr(R"x("detail":"the same bytes as in/2\\xFF (input 2)","twin":"in/2\\xFF","twin_input":2)x"));
}

TEST_F(ResumeTest, AFinishedSetIsLeftAsItIs) {
  const Feed feed = MakeFeed(20);
  const Options options = OptionsFor(dataset::SetFormat::kRaw, "set");
  const auto made = Prepare(feed, options).value();
  EXPECT_FALSE(made.was_finished);
  Feed unread = feed;
  unread.get = [](int64_t) -> FedPicture { std::abort(); };
  const auto again = Prepare(unread, options).value();
  EXPECT_TRUE(again.was_finished);
  EXPECT_EQ(again.images, made.images);
  EXPECT_EQ(again.rejected, made.rejected);
  EXPECT_EQ(again.bytes_out, made.bytes_out);
}

TEST_F(ResumeTest, InputsThatCameOrWentAreTakenUpFromWhereTheListsPart) {
  const Options options = OptionsFor(dataset::SetFormat::kTfrecord, "set");
  for (const int64_t now : {15, 30, 60}) {
    ASSERT_TRUE(Prepare(MakeFeed(now), OptionsFor(dataset::SetFormat::kTfrecord, "whole")));
    StopAfter(20, MakeFeed(30), options);
    const auto summary = Prepare(MakeFeed(now), options);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_LE(summary->begun_at, std::min<int64_t>(now, 20));
    EXPECT_TRUE(ReadAll(Path("set")) == ReadAll(Path("whole"))) << now;
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ResumeTest, SourcesThatChangedMeanwhileAreAnErrorAndNothingIsFinished) {
  Feed feed = MakeFeed(10);
  bool changed = true;
  feed.check_unchanged = [&]() -> Status {
    return changed ? Status(Fail(ErrorCode::kIo, "the sources changed")) : Status();
  };
  const Options options = OptionsFor(dataset::SetFormat::kFiles, "set");
  const auto failed = Prepare(feed, options);
  EXPECT_THAT(failed.error().message, HasSubstr("the sources changed: run the same command again"));
  EXPECT_FALSE(dataset::PreparedSet::IsSet(Path("set")));
  changed = false;
  EXPECT_EQ(Prepare(feed, options)->begun_at, 10);
}

TEST_F(ResumeTest, ASourceThatVanishesIsAnErrorAndItsReturnHeals) {
  const Feed good = MakeFeed(20);
  Feed bad = good;
  bad.get = [&](int64_t i) {
    FedPicture picture = good.get(i);
    if (i == 12) picture.encoded = std::unexpected(image::Reject{image::RejectReason::kVanished, "gone"});
    return picture;
  };
  const Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  const auto failed = Prepare(bad, options);
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_THAT(failed.error().message,
              HasSubstr("in/12\\xFF: was there when it was listed, and cannot be had any more (gone)"));
  EXPECT_EQ(Prepare(good, options)->begun_at, 12);
  ASSERT_TRUE(Prepare(good, OptionsFor(dataset::SetFormat::kTar, "whole")));
  EXPECT_TRUE(ReadAll(Path("set")) == ReadAll(Path("whole")));
}

// The bytes that were read may be half of the old and half of the new picture.
TEST_F(ResumeTest, ASourceThatChangesWhileItIsReadIsAnErrorAndNoPicture) {
  const Feed good = MakeFeed(20);
  Feed bad = good;
  std::atomic<int> version = 0;
  bad.state = [&](int64_t i) { return i == 11 ? std::to_string(version.load()) : ""; };
  bad.get = [&](int64_t i) {
    if (i == 11) version = 1;
    return good.get(i);
  };
  const Options options = OptionsFor(dataset::SetFormat::kTar, "set");
  const auto failed = Prepare(bad, options);
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_THAT(failed.error().message, HasSubstr("in/11\\xFF: changed while it was read"));
  EXPECT_EQ(Prepare(bad, options)->begun_at, 11);
}

// A URL that is being fetched when the stop comes is given up: that is no reject of the set.
TEST_F(ResumeTest, WhatAStopBrokeOffIsNotRejected) {
  const Feed good = MakeFeed(20);
  for (const int64_t last : {0, 5, 19}) {
    std::stop_source stop;
    Feed stopped = good;
    stopped.get = [&](int64_t i) {
      if (i != last) return good.get(i);
      stop.request_stop();
      return FedPicture{
          .source = "url",
          .encoded = std::unexpected(image::Reject{image::RejectReason::kUnreachable, "stopped"})};
    };
    Options options = OptionsFor(dataset::SetFormat::kTar, "set");
    options.workers = 1;
    EXPECT_EQ(PrepareSet(stopped, options, clock_, stop.get_token(), {}).error().code, ErrorCode::kCancelled);
    ASSERT_TRUE(Prepare(good, options));
    ASSERT_TRUE(Prepare(good, OptionsFor(dataset::SetFormat::kTar, "whole")));
    EXPECT_TRUE(ReadAll(Path("set")) == ReadAll(Path("whole"))) << last;
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ResumeTest, VariationsAreTheSetsThatEachRecipeGivesAlone) {
  const Feed feed = MakeFeed(30);
  const std::vector<Variation> variations = {
      {"small", {.short_side = 20, .crop = dataset::Size{16, 16}}},
      {"grey", {.resize = dataset::Size{12, 30}, .channels = dataset::Channels::kGrey}},
      {"part", {.crop = dataset::Size{10, 10}}}};
  for (const auto format : kFormats) {
    Options options = OptionsFor(format, "all");
    options.geometry.reset();
    options.variations = variations;
    StopAfter(11, feed, options);
    ASSERT_TRUE(Prepare(feed, options));
    for (const Variation& variation : variations) {
      Options alone = OptionsFor(format, variation.name);
      alone.geometry = variation.geometry;
      ASSERT_TRUE(Prepare(feed, alone));
      EXPECT_TRUE(ReadAll(Path("all/" + variation.name)) == ReadAll(Path(variation.name))) << variation.name;
    }
    EXPECT_TRUE(Prepare(feed, options)->was_finished);
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(ResumeTest, JoinedPartsAreTheSetOfOneMachine) {
  const Feed feed = MakeFeed(31);
  for (const auto format : kFormats) {
    ASSERT_TRUE(Prepare(feed, OptionsFor(format, "whole")));
    Options options = OptionsFor(format, "parts");
    for (const int64_t index : {2, 3, 1}) {
      options.part = dataset::Part{index, 3};
      options.workers = static_cast<int>(index);
      ASSERT_TRUE(Prepare(feed, options));
    }
    const JoinOptions join{.parts = {Path("parts")}, .folder = Path("joined")};
    const auto joined = JoinParts(join, clock_);
    ASSERT_TRUE(joined) << joined.error().message;
    EXPECT_TRUE(ReadAll(Path("joined")) == ReadAll(Path("whole")));
    EXPECT_TRUE(JoinParts(join, clock_)->was_finished);
    std::filesystem::remove_all(folder_);
  }
}

// Pictures 2 and 8, which are one, lie in different parts.
TEST_F(ResumeTest, ADuplicateThatTheJoinFindsIsCounted) {
  const Feed feed = MakeFeed(31);
  Options options = OptionsFor(dataset::SetFormat::kTar, "parts");
  for (const int64_t index : {1, 2, 3, 4, 5}) {
    options.part = dataset::Part{index, 5};
    EXPECT_FALSE(Prepare(feed, options)->rejected.contains("duplicate"));
  }
  Progress last;
  const auto joined = JoinParts({.parts = {Path("parts")},
                                 .folder = Path("joined"),
                                 .progress = [&](const Progress& progress) { last = progress; }},
                                clock_);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->rejected.at("duplicate"), 1);
  EXPECT_EQ(joined->format, dataset::SetFormat::kTar);
  int64_t rejected = 0;
  for (const auto& [reason, count] : joined->rejected) rejected += count;
  EXPECT_EQ(last.rejected, rejected);
}

TEST_F(ResumeTest, PartsThatDoNotBelongTogetherAreRefused) {
  const Feed feed = MakeFeed(9);
  Options options = OptionsFor(dataset::SetFormat::kTar, "parts");
  options.part = dataset::Part{1, 2};
  ASSERT_TRUE(Prepare(feed, options));
  const auto refusal = [&](const std::vector<std::string>& parts) {
    return JoinParts({.parts = parts, .folder = Path("joined")}, clock_).error().message;
  };
  EXPECT_THAT(refusal({Path("parts")}), HasSubstr("part 2 of 2 is missing"));
  options.part = dataset::Part{2, 2};
  StopAfter(1, feed, options);
  EXPECT_THAT(refusal({Path("parts")}), HasSubstr("this part is not finished"));
  ASSERT_TRUE(Prepare(feed, options));
  EXPECT_THAT(refusal({Path("parts"), Path("parts/part-1-of-2")}), HasSubstr("is there twice"));
  options.folder = Path("other");
  options.min_bytes = 1;
  ASSERT_TRUE(Prepare(feed, options));
  EXPECT_THAT(refusal({Path("parts/part-1-of-2"), Path("other")}), HasSubstr("of different works"));
  ASSERT_TRUE(Prepare(feed, OptionsFor(dataset::SetFormat::kTar, "whole")));
  EXPECT_THAT(refusal({Path("whole")}), HasSubstr("not a part of one"));
  EXPECT_FALSE(dataset::PreparedSet::IsSet(Path("joined")));
}

TEST(Part, IsReadFromTheTextOrTheBatchSystem) {
  std::map<std::string, std::string> set;
  const Environment environment = [&](const char* name) -> std::optional<std::string> {
    return set.contains(name) ? std::optional(set.at(name)) : std::nullopt;
  };
  EXPECT_EQ(ParsePart("2/3", environment), (dataset::Part{2, 3}));
  for (const char* text : {"", "0/3", "4/3", "1", "1/", "/3", "1/x", "auto/", "1/0", "-1/3", "1/2/3"}) {
    EXPECT_EQ(ParsePart(text, environment).error().code, ErrorCode::kInvalidArgument) << text;
  }
  for (const char* text : {"1/1000001", "1/99999999999", "1/99999999999999999999"})
    EXPECT_THAT(ParsePart(text, environment).error().message, HasSubstr("more than 1000000 parts")) << text;
  EXPECT_THAT(ParsePart("auto", environment).error().message, HasSubstr("neither SLURM_ARRAY_TASK_ID"));
  set = {{"JOB_COMPLETION_INDEX", "0"}};
  EXPECT_EQ(ParsePart("auto/5", environment), (dataset::Part{1, 5}));
  EXPECT_THAT(ParsePart("auto", environment).error().message, HasSubstr("auto/N"));
  set = {{"SLURM_ARRAY_TASK_ID", "14"},
         {"SLURM_ARRAY_TASK_MIN", "10"},
         {"SLURM_ARRAY_TASK_STEP", "2"},
         {"SLURM_ARRAY_TASK_COUNT", "4"}};
  EXPECT_EQ(ParsePart("auto", environment), (dataset::Part{3, 4}));
  set["SLURM_ARRAY_TASK_ID"] = "18";
  EXPECT_FALSE(ParsePart("auto", environment));
}

TEST(Part, RangesCoverAllInputsOnce) {
  for (const int64_t inputs : {0, 1, 7, 9, 100}) {
    int64_t next = 0;
    for (int64_t index = 1; index <= 9; ++index) {
      const Range range = RangeOf({index, 9}, inputs);
      EXPECT_EQ(range.first, next);
      EXPECT_LE(range.end - range.first, inputs / 9 + 1);
      next = range.end;
    }
    EXPECT_EQ(next, inputs);
  }
}

TEST(SampleOf, IsAChoiceOfTheSeed) {
  EXPECT_EQ(SampleOf(5, 9, 1), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(SampleOf(1000, 10, 7), SampleOf(1000, 10, 7));
  EXPECT_NE(SampleOf(1000, 10, 7), SampleOf(1000, 10, 8));
  std::vector<int> times(10);
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const auto chosen = SampleOf(10, 3, seed);
    ASSERT_EQ(chosen.size(), 3u);
    for (const int64_t i : chosen) times[static_cast<size_t>(i)] += 1;
  }
  // Each is chosen with probability 0.3: 900 times, standard deviation sqrt(3000 * 0.3 * 0.7) = 25.1.
  for (const int count : times) EXPECT_NEAR(count, 900, 5 * 25.1);
}

}  // namespace
}  // namespace weir::prepare
