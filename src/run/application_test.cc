#include "run/application.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <span>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "image/encode.h"

namespace weir::run {
namespace {

constexpr int kSide = 8;

// Answers each picture with two scores: its mean, and one minus it. Answers on the thread that submits.
class MeanService final : public infer::Service {
 public:
  void Submit(infer::Call call) override {
    const infer::Tensor& input = call.request.inputs.at(0);
    const int64_t items = input.shape[0];
    bool fails = false;
    {
      MutexLock lock(mutex_);
      batches_ += 1;
      largest_ = std::max(largest_, items);
      fails = batches_ == fail_batch_;
    }
    if (fails) return call.Answer(Fail(ErrorCode::kInternal, "broken on purpose"));
    infer::Response response;
    infer::Tensor scores{.name = "scores", .dtype = infer::DType::kFp32, .shape = {items, 2}};
    scores.data = Bytes::Allocate(static_cast<size_t>(items) * 2 * sizeof(float));
    const size_t per_item = input.data.size() / static_cast<size_t>(items) / sizeof(float);
    for (int64_t i = 0; i < items; ++i) {
      double sum = 0;
      for (size_t k = 0; k < per_item; ++k) {
        float x = 0;
        std::memcpy(&x, input.data.data() + (static_cast<size_t>(i) * per_item + k) * sizeof x, sizeof x);
        sum += x;
      }
      const float mean = static_cast<float>(sum / static_cast<double>(per_item));
      const float pair[2] = {mean, 1 - mean};
      std::memcpy(scores.data.mutable_data() + static_cast<size_t>(i) * sizeof pair, pair, sizeof pair);
    }
    response.outputs.push_back(std::move(scores));
    call.Answer(std::move(response));
  }

  Mutex mutex_;         // of what follows: whoever fills a batch submits it
  int batches_ = 0;     // the warm-up batch is the first
  int fail_batch_ = 0;  // which one to fail; 0: none
  int64_t largest_ = 0;
};

struct SeenAnswers final : AnswerSink {
  void Answered(const dataset::Input& input, const std::vector<Answer>& answers) override {
    names.push_back(input.name);
    scores.push_back(answers.at(0).class_index == 0 ? answers[0].score : answers[1].score);
  }
  void Rejected(const dataset::Input& input, const image::Reject& reject) override {
    names.push_back(input.name);
    scores.push_back(-1);
    reasons.push_back(reject.reason);
  }
  std::vector<std::string> names;
  std::vector<double> scores;  // the picture's mean; -1 where rejected
  std::vector<image::RejectReason> reasons;
};

class ApplicationTest : public ::testing::Test {
 protected:
  ApplicationTest()
      : folder_(std::filesystem::temp_directory_path() / ("weir_application_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    target_.model = "mean";
    target_.input = {"pixels", infer::DType::kFp32, {-1, 3, kSide, kSide}};
    target_.output = "scores";
    target_.recipe.geometry.resize = dataset::Size{kSide, kSide};
    target_.recipe.scale = 1 / 255.0;
  }
  ~ApplicationTest() override { std::filesystem::remove_all(folder_); }

  // Grey pictures of levels 0, 10, 20 ...; every `broken`-th is cut.
  dataset::Listing MakePictures(int count, int broken) {
    for (int i = 0; i < count; ++i) {
      image::Pixels pixels{.width = kSide, .height = kSide, .channels = 3};
      pixels.data.assign(kSide * kSide * 3, static_cast<uint8_t>(i * 10 % 250));
      std::string png = *image::EncodePng(pixels);
      if (broken > 0 && i % broken == 0) png.resize(png.size() / 2);
      EXPECT_TRUE(WriteFileWhole(folder_ / ("picture" + std::to_string(1000 + i) + ".png"), png));
    }
    return *dataset::ListInputs({folder_});
  }
  Result<Report> RunOver(const dataset::Listing& listing, Options options, SeenAnswers& seen) {
    Application application(service_, target_, listing, clock_, options);
    TRY_STATUS(application.MakeReady());
    return application.Run(seen, nullptr);
  }
  static void ExpectInOrder(const dataset::Listing& listing, const SeenAnswers& seen, int passes,
                            int broken) {
    const size_t count = listing.inputs.size();
    ASSERT_EQ(seen.names.size(), count * static_cast<size_t>(passes));
    for (size_t i = 0; i < seen.names.size(); ++i) {
      EXPECT_EQ(seen.names[i], listing.inputs[i % count].name);
      const bool cut = broken > 0 && i % count % static_cast<size_t>(broken) == 0;
      const double level = static_cast<double>(i % count * 10 % 250);
      EXPECT_NEAR(seen.scores[i], cut ? -1 : level / 255, 1e-5) << i;
    }
  }

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  MeanService service_;
  Target target_;
};

TEST_F(ApplicationTest, EveryPictureIsAnsweredOrRejectedInTheOrderOfTheInput) {
  const dataset::Listing listing = MakePictures(37, 5);
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    for (const int threads : {1, 3}) {
      for (const int batch : {1, 4, 64}) {
        for (const bool no_files : {false, true}) {
          SeenAnswers seen;
          const auto report = RunOver(listing,
                                      {.mode = mode,
                                       .batch = batch,
                                       .in_flight = 2,
                                       .decode_threads = threads,
                                       .no_files = no_files,
                                       .repeat_data = 2},
                                      seen);
          ASSERT_TRUE(report) << report.error().message;
          ExpectInOrder(listing, seen, 2, 5);
          EXPECT_EQ(report->images, 2 * (37 - 8));
          EXPECT_EQ(report->rejected.total, 2 * 8);
          EXPECT_EQ(report->rejected.by_reason.at("damaged"), 16);
          EXPECT_LE(service_.largest_, 64);
        }
      }
    }
  }
}

TEST_F(ApplicationTest, TheStagesOfPicturesSumToTheirTotalExactly) {
  const dataset::Listing listing = MakePictures(25, 0);
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    SeenAnswers seen;
    const auto report = RunOver(listing, {.mode = mode, .batch = 4, .decode_threads = 2}, seen);
    const StageTimes& s = report->stages;
    EXPECT_EQ(s.load_prepare + s.wait + s.send + s.infer + s.result_load + s.print, s.total);
    EXPECT_EQ(s.pictures, 25);
    EXPECT_GT(s.load_prepare, Duration{});
  }
}

TEST_F(ApplicationTest, AFailedBatchRejectsItsPicturesAndTheRunGoesOn) {
  const dataset::Listing listing = MakePictures(12, 0);
  service_.fail_batch_ = 2;
  SeenAnswers seen;
  const auto report = RunOver(listing, {.batch = 4, .decode_threads = 1}, seen);
  EXPECT_EQ(report->images, 8);
  EXPECT_EQ(report->failed, 4);
  EXPECT_EQ(seen.reasons, std::vector<image::RejectReason>(4, image::RejectReason::kFailed));
}

TEST_F(ApplicationTest, AModelThatFailsTheWarmUpFailsTheRun) {
  const dataset::Listing listing = MakePictures(2, 0);
  service_.fail_batch_ = 1;
  SeenAnswers seen;
  EXPECT_EQ(RunOver(listing, {}, seen).error().message, "the warm-up batch: broken on purpose");
  EXPECT_TRUE(seen.names.empty());
}

TEST_F(ApplicationTest, AFixedBatchIsPadded) {
  const dataset::Listing listing = MakePictures(6, 0);
  target_.fixed_batch = 4;
  SeenAnswers seen;
  const auto report = RunOver(listing, {.batch = 4, .decode_threads = 1}, seen);
  EXPECT_EQ(report->images, 6);
  ExpectInOrder(listing, seen, 1, 0);
  EXPECT_EQ(service_.largest_, 4);
}

TEST_F(ApplicationTest, StopFinishesWhatHasBegun) {
  const dataset::Listing listing = MakePictures(40, 0);
  for (const bool no_files : {false, true}) {
    struct StopAfter final : AnswerSink {
      void Answered(const dataset::Input&, const std::vector<Answer>&) override {
        if (++count == 10) application->Stop();
      }
      void Rejected(const dataset::Input&, const image::Reject&) override {}
      Application* application = nullptr;
      int64_t count = 0;
    } sink;
    Application application(service_, target_, listing, clock_,
                            {.batch = 2, .decode_threads = 2, .no_files = no_files, .repeat_data = 1000});
    sink.application = &application;
    ASSERT_TRUE(application.MakeReady());
    const Report report = application.Run(sink, nullptr);
    EXPECT_TRUE(report.stopped);
    EXPECT_EQ(report.images, sink.count);
    EXPECT_LT(report.images, 40000);
  }
}

// A server that decodes: gives each file a score of its first byte, and refuses a batch for its first file
// that begins with 'x'. Answers on the thread that submits, with the times that a wire gives.
class FileService final : public infer::Service {
 public:
  explicit FileService(const Clock& clock) : clock_(clock) {}

  void Submit(infer::Call call) override {
    const infer::Tensor& input = call.request.inputs.at(0);
    CHECK(input.dtype == infer::DType::kBytes);
    std::vector<float> scores;
    call.times.done = clock_.Now();
    {
      MutexLock lock(mutex_);
      calls.push_back(input.shape.at(0));
    }
    for (auto rest = input.data.span(); !rest.empty();) {
      uint32_t length = 0;
      std::memcpy(&length, rest.data(), sizeof length);
      const char first = static_cast<char>(rest[sizeof length]);
      if (first == 'x') {
        return call.Answer(Fail(ErrorCode::kInvalidArgument,
                                "picture " + std::to_string(scores.size() / 2) + " is rejected: damaged: x"));
      }
      scores.insert(scores.end(), {static_cast<float>(first), 0});
      rest = rest.subspan(sizeof length + length);
    }
    infer::Response response;
    response.outputs.push_back({.name = "scores",
                                .shape = {input.shape.at(0), 2},
                                .data = Bytes::Copy(std::as_bytes(std::span(scores)))});
    call.Answer(std::move(response));
  }

  std::vector<int64_t> calls;  // their sizes

 private:
  Mutex mutex_;
  const Clock& clock_;
};

TEST_F(ApplicationTest, FilesAreSentAsTheyAreAndThoseRefusedTogetherAloneAgain) {
  constexpr int kFiles = 21;
  for (int i = 0; i < kFiles; ++i) {
    const std::string bytes = i == 4       ? ""
                              : i % 5 == 0 ? "xfile"
                                           : std::string(1, static_cast<char>('A' + i)) + "file";
    ASSERT_TRUE(WriteFileWhole(folder_ / ("picture" + std::to_string(1000 + i) + ".png"), bytes));
  }
  const dataset::Listing listing = *dataset::ListInputs({folder_});
  target_.form = Form::kFile;
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    for (const bool no_files : {false, true}) {
      FileService service(clock_);
      Application application(service, target_, listing, clock_,
                              {.mode = mode, .batch = 8, .decode_threads = 1, .no_files = no_files});
      ASSERT_TRUE(application.MakeReady());
      SeenAnswers seen;
      const Report report = application.Run(seen, nullptr);
      ASSERT_EQ(seen.names.size(), static_cast<size_t>(kFiles));
      for (int i = 0; i < kFiles; ++i) {
        EXPECT_EQ(seen.names[i], listing.inputs[i].name);
        EXPECT_EQ(seen.scores[i], i == 4 || i % 5 == 0 ? -1 : 'A' + i) << i;
      }
      EXPECT_EQ(report.images, kFiles - 6);
      EXPECT_EQ(report.failed, 0);
      EXPECT_EQ(report.rejected.by_reason, (std::map<std::string, int64_t>{{"damaged", 5}, {"empty", 1}}));
      EXPECT_EQ(report.rejected.first.front().second.detail, "x");
      // The warm-up, three batches of 20 files, all refused, and each file alone.
      EXPECT_EQ(service.calls.size(), 1U + 3U + 20U);
    }
  }
}

TEST_F(ApplicationTest, AServersRoundTripsAreCountedWithoutItsEnginesTimes) {
  class Remote final : public infer::Service {
   public:
    Remote(infer::Service& inner, const Clock& clock) : inner_(inner), clock_(clock) {}
    void Submit(infer::Call call) override {
      call.times.done = clock_.Now();
      inner_.Submit(std::move(call));
    }

   private:
    infer::Service& inner_;
    const Clock& clock_;
  } remote(service_, clock_);
  const dataset::Listing listing = MakePictures(10, 0);
  Application application(remote, target_, listing, clock_, {.batch = 4});
  ASSERT_TRUE(application.MakeReady());
  SeenAnswers seen;
  const Report report = application.Run(seen, nullptr);
  EXPECT_EQ(report.batches, 3);
  EXPECT_GT(report.costs.round_trip_s, 0);
  EXPECT_EQ(report.costs.engine_busy_s, 0);
}

}  // namespace
}  // namespace weir::run
