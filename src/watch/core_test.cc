#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/seed.h"
#include "image/encode.h"
#include "watch/deadline_queue.h"
#include "watch/find_max.h"
#include "watch/frame.h"
#include "watch/frame_code.h"
#include "watch/picture_input.h"
#include "watch/session.h"
#include "watch/stream_clock.h"
#include "watch/stream_spec.h"
#include "watch/tracker.h"

namespace weir::watch {
namespace {

constexpr Instant kStart = Instant(100s);

TEST(DropCause, HasANameForEach) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDropCauses; ++i) names.insert(ToString(static_cast<DropCause>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kDropCauses));
  EXPECT_FALSE(names.contains(""));
}

TEST(StageTimes, AddUpToTheLatency) {
  FrameTimes times{.capture = kStart, .arrived = kStart + 10ms};
  times.taken = kStart + 12ms;
  times.decoded = kStart + 15ms;
  times.inferred = kStart + 40ms;
  times.done = kStart + 41ms;
  const auto stages = StageTimes(times);
  Duration sum{};
  for (const auto& stage : stages) sum += stage.value_or(Duration{});
  EXPECT_EQ(sum, 41ms);
  EXPECT_FALSE(stages[static_cast<size_t>(Stage::kDetect)]);
  EXPECT_EQ(stages[static_cast<size_t>(Stage::kInfer)], 25ms);
}

DeadlineQueue::Entry Entry(int64_t id, int stream, Duration deadline) {
  return {.id = id, .stream = stream, .deadline = kStart + deadline};
}

TEST(DeadlineQueue, TakesTheEarliestDeadlineOfAllStreams) {
  DeadlineQueue queue({});
  std::vector<DeadlineQueue::Dropped> dropped;
  EXPECT_FALSE(queue.Offer(Entry(1, 0, 80ms)));
  EXPECT_FALSE(queue.Offer(Entry(2, 1, 50ms)));
  EXPECT_FALSE(queue.Offer(Entry(3, 2, 90ms)));
  EXPECT_EQ(queue.Take(kStart, 0ms, {}, dropped)->id, 2);
  EXPECT_EQ(queue.Take(kStart, 0ms, {0}, dropped)->id, 3) << "stream 0 is busy";
  EXPECT_EQ(queue.Take(kStart, 0ms, {}, dropped)->id, 1);
  EXPECT_FALSE(queue.Take(kStart, 0ms, {}, dropped));
  EXPECT_TRUE(dropped.empty());
}

TEST(DeadlineQueue, ANewerFrameTakesThePlaceOfTheOlderInTheOrderToo) {
  DeadlineQueue queue({});
  std::vector<DeadlineQueue::Dropped> none;
  EXPECT_FALSE(queue.Offer(Entry(1, 0, 50ms)));
  EXPECT_FALSE(queue.Offer(Entry(2, 1, 60ms)));
  const auto dropped = queue.Offer(Entry(3, 0, 100ms));
  ASSERT_TRUE(dropped);
  EXPECT_EQ(dropped->entry.id, 1);
  EXPECT_EQ(dropped->cause, DropCause::kSuperseded);
  EXPECT_EQ(queue.Take(kStart, 0ms, {}, none)->id, 3) << "a stream that is replaced often is not left behind";
}

TEST(DeadlineQueue, KeepsFramesUpToItsBound) {
  DeadlineQueue queue({.latest_only = false, .max_waiting = 2});
  EXPECT_FALSE(queue.Offer(Entry(1, 0, 50ms)));
  EXPECT_FALSE(queue.Offer(Entry(2, 0, 60ms)));
  EXPECT_EQ(queue.Offer(Entry(3, 0, 70ms))->entry.id, 1);
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Clear().size(), 2U);
}

TEST(DeadlineQueue, DropsWhatCannotBeInTimeBeforeItCostsInference) {
  DeadlineQueue queue({});
  queue.Offer(Entry(1, 0, -1ms));
  queue.Offer(Entry(2, 1, 5ms));
  queue.Offer(Entry(3, 2, 30ms));
  std::vector<DeadlineQueue::Dropped> dropped;
  EXPECT_EQ(queue.Take(kStart, 10ms, {}, dropped)->id, 3);
  ASSERT_EQ(dropped.size(), 2U);
  EXPECT_EQ(dropped[0].cause, DropCause::kLate);
  EXPECT_EQ(dropped[1].cause, DropCause::kExpired);
}

TEST(ServiceEstimate, FollowsTheTimesAndComesDownWhenItDropsEverything) {
  ServiceEstimate estimate;
  EXPECT_EQ(estimate.value(), 0ms);
  for (int i = 0; i < 100; ++i) estimate.Add(10ms);
  EXPECT_NEAR(Milliseconds(estimate.value()), 10, 0.1);
  for (int i = 0; i < 10; ++i) estimate.Add(500ms);
  EXPECT_GT(estimate.value(), 300ms);
  for (int i = 0; i < 300; ++i) estimate.Relax();
  EXPECT_LT(estimate.value(), 5ms);
}

image::Pixels Grey(int width, int height) {
  image::Pixels pixels{.width = width, .height = height, .channels = 3};
  pixels.data.assign(static_cast<size_t>(width) * height * 3, 120);
  return pixels;
}

TEST(FrameCode, SurvivesCompressionAndScaling) {
  Random random(1);
  for (const auto& [width, height] : {std::pair(640, 480), {320, 240}, {768, 432}, {1280, 720}, {160, 128}}) {
    const FrameCode code{
        .stream = 7, .counter = static_cast<uint32_t>(random.Next()), .captured = 1'790'000'000'123'456us};
    image::Pixels pixels = Grey(width, height);
    BurnCode(code, pixels);
    EXPECT_EQ(ReadCode(pixels), code);
    const std::string jpeg = *image::EncodeJpeg(pixels, {.quality = 50});
    JpegFrames decoder;
    for (const int shrink : {1, 2}) {
      if (width / shrink < 160) continue;
      const auto decoded =
          decoder.Decode(std::as_bytes(std::span(jpeg)), 1 << 24, [&](int, int) { return shrink; });
      ASSERT_TRUE(decoded) << decoded.error().message;
      EXPECT_EQ(ReadCode(*decoded), code) << width << " at 1/" << shrink;
    }
  }
}

TEST(FrameCode, IsNotFoundWhereThereIsNone) {
  EXPECT_FALSE(ReadCode(Grey(640, 480)));
  EXPECT_FALSE(ReadCode(Grey(8, 8)));
  Random random(3);
  image::Pixels noise = Grey(640, 480);
  for (uint8_t& level : noise.data) level = static_cast<uint8_t>(random.Next());
  EXPECT_FALSE(ReadCode(noise));
  image::Pixels damaged = Grey(640, 480);
  BurnCode({.stream = 1, .counter = 5, .captured = 1s}, damaged);
  for (int y = 20; y < 28; ++y) std::fill_n(damaged.data.begin() + y * 640 * 3, 600 * 3, 235);
  EXPECT_FALSE(ReadCode(damaged)) << "a cell of another colour breaks the check";
}

TEST(ReadClocks, TakesThePairWithTheLeastTimeBetween) {
  // A clock whose reader loses its core for 17 ms in the first pair.
  class Disturbed final : public Clock {
   public:
    Instant Now() const override {
      const int read = reads_++;
      return Instant(1s + (read == 0 ? 0ms : 17ms) + read * 1us);
    }
    mutable int reads_ = 0;
  } clock;
  EXPECT_EQ(ReadClocks(clock).steady, Instant(1s + 17ms + 2500ns));
  EXPECT_EQ(clock.reads_, 4) << "a narrow pair is enough";
}

TEST(ClockOffset, ReportsDriftAndSteps) {
  ClockOffset offset;
  for (int i = 0; i <= 20; ++i)
    offset.Note(kStart + i * 1s, 1000s + kStart.time_since_epoch() + i * 1s + i * 50us);
  const auto report = offset.report();
  EXPECT_NEAR(*report.drift_ppm, 50, 0.5);
  EXPECT_EQ(report.steps, 0);
  EXPECT_NEAR(report.offset_change_ms, 1.0, 0.001);
  EXPECT_EQ(offset.ToSteady(1000s + kStart.time_since_epoch() + 20s + 1ms), kStart + 20s);
  offset.Note(kStart + 21s, 1002s + kStart.time_since_epoch() + 21s);
  EXPECT_EQ(offset.report().steps, 1);
  EXPECT_NEAR(offset.report().largest_step_ms, 1999, 0.1);
}

CounterCheck::Stamp Stamp(int counter, Duration captured, Duration arrived) {
  return {.counter = static_cast<uint32_t>(counter), .captured = captured, .arrived = kStart + arrived};
}

TEST(CounterCheck, AccountsForEveryFrame) {
  CounterCheck check;
  const auto at = [](int counter) { return Duration(counter * 100ms); };
  const auto stamp = [&](int counter) { return Stamp(counter, at(counter), at(counter)); };
  EXPECT_EQ(check.Note(stamp(5), 0).lost, 0);
  EXPECT_EQ(check.Note(stamp(6), 0).lost, 0);
  EXPECT_EQ(check.Note(stamp(9), 0).lost, 2);
  const auto late = check.Note(stamp(8), 0);
  EXPECT_EQ(late.order, CounterCheck::Order::kOutOfOrder);
  EXPECT_TRUE(late.recovered);
  EXPECT_EQ(check.Note(stamp(9), 0).order, CounterCheck::Order::kRepeated);
  const auto skipped =
      check.Note(stamp(13), 2);  // 10, 11 and 12 are missing; two of them were here, undecoded
  EXPECT_EQ(skipped.lost, 1);
  EXPECT_FALSE(skipped.clock_step);
}

TEST(CounterCheck, FindsAClockThatJumpsAndASenderThatBeginsAgain) {
  CounterCheck check;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(check.Note(Stamp(i, 100ms * i, 100ms * i), 0).clock_step);
  const auto step = check.Note(Stamp(10, 1500ms, 1000ms), 0);
  ASSERT_TRUE(step.clock_step);
  EXPECT_NEAR(Milliseconds(*step.clock_step), 500, 5);
  EXPECT_FALSE(check.Note(Stamp(11, 1600ms, 1100ms), 0).clock_step) << "the jump is reported once";
  EXPECT_TRUE(check.Note(Stamp(0, 5000ms, 4500ms), 0).restarted);
  EXPECT_EQ(check.Note(Stamp(1, 5100ms, 4600ms), 0).lost, 0);
}

TEST(CounterCheck, ASlowWayOrAnUnevenCameraIsNoClockThatJumps) {
  CounterCheck slow, uneven;
  for (int i = 0; i < 10; ++i) {
    slow.Note(Stamp(i, 100ms * i, 100ms * i), 0);
    uneven.Note(Stamp(i, 100ms * i, 100ms * i), 0);
  }
  EXPECT_FALSE(slow.Note(Stamp(10, 1000ms, 1800ms), 0).clock_step);
  EXPECT_FALSE(uneven.Note(Stamp(10, 1800ms, 1801ms), 0).clock_step);
}

TEST(Overlap, IsIntersectionOverUnion) {
  EXPECT_FLOAT_EQ(Overlap({0, 0, 2, 2}, {1, 1, 3, 3}), 1.0F / 7);
  EXPECT_FLOAT_EQ(Overlap({0, 0, 1, 1}, {2, 2, 3, 3}), 0);
  EXPECT_FLOAT_EQ(Overlap({0, 0, 0, 0}, {0, 0, 0, 0}), 0);
}

TEST(Tracker, KeepsATrackWhilePersonsPassAndEmbedsItOnceInAWhile) {
  Tracker tracker({.embed_every = 4});
  const auto frame = [](float shift) {
    return std::vector<Detection>{{{0.1F + shift, 0.2F, 0.3F + shift, 0.8F}, 0.9F, 0},
                                  {{0.7F - shift, 0.2F, 0.9F - shift, 0.8F}, 0.8F, 0}};
  };
  int embedded = 0;
  for (int i = 0; i < 9; ++i) {
    const auto matches = tracker.Update(frame(0.01F * static_cast<float>(i)));
    EXPECT_EQ(matches[0].track, 1);
    EXPECT_EQ(matches[1].track, 2);
    embedded += matches[0].embed ? 1 : 0;
  }
  EXPECT_EQ(embedded, 3) << "frames 0, 4 and 8";
  EXPECT_EQ(tracker.tracks(), 2);
}

TEST(Tracker, EndsATrackThatIsGoneAndNeverUsesItsNumberAgain) {
  Tracker tracker({.max_missed = 2});
  const std::vector<Detection> one{{{0, 0, 0.5F, 0.5F}, 1, 0}};
  EXPECT_EQ(tracker.Update(one)[0].track, 1);
  for (int i = 0; i < 2; ++i) tracker.Update({});
  EXPECT_EQ(tracker.Update(one)[0].track, 1) << "missed for two frames only";
  for (int i = 0; i < 3; ++i) tracker.Update({});
  const auto again = tracker.Update(one);
  EXPECT_EQ(again[0].track, 2);
  EXPECT_TRUE(again[0].embed);
}

TEST(ParseStream, ReadsMadeStreamsAndNamesWhatIsWrong) {
  const auto spec = ParseStream("made:fps=25,size=320x240,loss=0.1,step=2s+-500ms,resize=3s+160x128");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->made.fps, 25);
  EXPECT_EQ(spec->made.step->length, -500ms);
  EXPECT_EQ(spec->made.resize->width, 160);
  EXPECT_TRUE(ParseStream("made:"));
  for (const char* bad :
       {"made:fps", "made:fps=0", "made:colour=1", "made:size=100x100", "made:loss=2", "ftp://x"})
    EXPECT_FALSE(ParseStream(bad)) << bad;
  EXPECT_THAT(ParseStream("made:fsp=2").error().message, testing::HasSubstr("fsp"));
}

TEST(InputMaker, CutsTheRegionOut) {
  image::Pixels frame = Grey(100, 50);
  for (int y = 10; y < 20; ++y)
    for (int x = 40; x < 60; ++x)
      for (int c = 0; c < 3; ++c)
        frame.data[static_cast<size_t>((y * 100 + x) * 3 + c)] = static_cast<uint8_t>(c == 0 ? 250 : 10);
  dataset::Recipe recipe;
  recipe.geometry.resize = dataset::Size{8, 4};
  recipe.datatype = dataset::ElementType::kUint8;
  recipe.layout = dataset::Layout::kNhwc;
  InputMaker maker;
  const Bytes rgb = maker.Make(frame, {0.4F, 0.2F, 0.6F, 0.4F}, recipe);
  ASSERT_EQ(rgb.size(), 8U * 4 * 3);
  EXPECT_EQ(static_cast<int>(rgb.data()[0]), 250);
  recipe.geometry.channels = dataset::Channels::kBgr;
  const Bytes bgr = maker.Make(frame, {0.4F, 0.2F, 0.6F, 0.4F}, recipe);
  EXPECT_EQ(static_cast<int>(bgr.data()[2]), 250);
  recipe.geometry.channels = dataset::Channels::kGrey;
  EXPECT_EQ(maker.Make(frame, {0, 0, 0, 0}, recipe).size(), 8U * 4);
}

// Planes of one level of luma, without colour.
struct GreyPlanes {
  std::vector<uint8_t> luma, chroma;
  image::PlanarPixels picture;
  explicit GreyPlanes(const image::Pixels& grey)
      : chroma(static_cast<size_t>(grey.width / 2) * static_cast<size_t>(grey.height / 2), 128) {
    for (size_t i = 0; i < grey.data.size(); i += 3) luma.push_back(grey.data[i]);
    picture = {.planes = {luma.data(), chroma.data(), chroma.data()},
               .steps = {grey.width, grey.width / 2, grey.width / 2},
               .width = grey.width,
               .height = grey.height,
               .colours = {.full_range = true}};
  }
};

TEST(InputMaker, MakesTheSameOfPlanesAndOfPixels) {
  image::Pixels frame = Grey(100, 60);
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 300; ++x)
      frame.data[static_cast<size_t>(y * 300 + x)] = static_cast<uint8_t>(x / 3 + 2 * y);
  const GreyPlanes planes(frame);
  dataset::Recipe recipe;
  recipe.geometry.short_side = 12;
  recipe.geometry.crop = dataset::Size{12, 10};
  recipe.datatype = dataset::ElementType::kUint8;
  recipe.layout = dataset::Layout::kNhwc;
  InputMaker maker;
  for (const Box& box : {Box{0, 0, 1, 1}, Box{0.2F, 0.1F, 0.8F, 0.9F}}) {
    const Bytes pixels = maker.Make(frame, box, recipe), planar = maker.Make(planes.picture, box, recipe);
    ASSERT_EQ(planar.size(), pixels.size());
    for (size_t i = 0; i < planar.size(); ++i)
      EXPECT_NEAR(static_cast<int>(planar.data()[i]), static_cast<int>(pixels.data()[i]), 1) << i;
  }
}

TEST(InputMaker, CropsWhereThePreparationOfPicturesDoes) {
  image::Pixels frame = Grey(16, 8);
  for (size_t i = 0; i < frame.data.size(); ++i) frame.data[i] = static_cast<uint8_t>(i / 3 % 16 * 10);
  dataset::Recipe recipe;
  recipe.geometry.short_side = 8;
  recipe.geometry.crop = dataset::Size{13, 8};
  recipe.datatype = dataset::ElementType::kUint8;
  recipe.layout = dataset::Layout::kNhwc;
  InputMaker maker;
  // Three columns are cut off: 1.5 is rounded to the even 2.
  EXPECT_EQ(static_cast<int>(maker.Make(frame, {0, 0, 1, 1}, recipe).data()[0]), 20);
  EXPECT_EQ(static_cast<int>(maker.Make(GreyPlanes(frame).picture, {0, 0, 1, 1}, recipe).data()[0]), 20);
}

TEST(FrameCode, IsReadFromLuma) {
  image::Pixels pixels = Grey(320, 240);
  const FrameCode code{.stream = 3, .counter = 77, .captured = 1'790'000'000'123'456us};
  BurnCode(code, pixels);
  EXPECT_EQ(ReadCode(GreyPlanes(pixels).picture), code);
  EXPECT_FALSE(ReadCode(GreyPlanes(Grey(320, 240)).picture));
}

TEST(ShrinkFor, LeavesEnoughForTheInput) {
  dataset::Recipe recipe;
  recipe.geometry.resize = dataset::Size{100, 100};
  EXPECT_EQ(ShrinkFor(recipe, 199, 400), 1);
  EXPECT_EQ(ShrinkFor(recipe, 200, 400), 2);
  EXPECT_EQ(ShrinkFor(recipe, 800, 800), 4);
  EXPECT_FALSE(CheckRecipe(dataset::Recipe{}));
  EXPECT_TRUE(CheckRecipe(recipe));
}

results::WatchResult Trial(double percent) {
  results::WatchResult result;
  result.in_time_percent = percent;
  return result;
}

TEST(FindMaxStreams, FindsTheKneeAndConfirmsItFiveTimes) {
  for (const int64_t limit : {0, 1, 2, 5, 37, 64}) {
    const auto found = FindMaxStreams({.most = 256}, [&](int64_t n) -> Result<results::WatchResult> {
      return Trial(n <= limit ? 99.5 : 80);
    });
    ASSERT_TRUE(found);
    EXPECT_EQ(found->streams, limit);
    EXPECT_EQ(found->confirmations, limit == 0 ? 0 : 5);
    EXPECT_FALSE(found->limited_by_most);
  }
}

TEST(FindMaxStreams, GoesDownWhereAConfirmationFails) {
  int plays_at_8 = 0;
  const auto found = FindMaxStreams({.most = 256}, [&](int64_t n) -> Result<results::WatchResult> {
    if (n == 8) return Trial(++plays_at_8 == 4 ? 90 : 100);
    return Trial(n < 8 ? 100 : 50);
  });
  EXPECT_EQ(found->streams, 7);
  EXPECT_EQ(found->confirmations, 5);
}

TEST(FindMaxStreams, SaysWhereItsOwnLimitEndedTheSearch) {
  const auto found =
      FindMaxStreams({.most = 12}, [](int64_t) -> Result<results::WatchResult> { return Trial(100); });
  EXPECT_EQ(found->streams, 12);
  EXPECT_TRUE(found->limited_by_most);
}

TEST(FindStreamBottleneck, NamesTheEngineTheCpuOrTheWay) {
  EXPECT_EQ(FindStreamBottleneck({.cpu = 0.3, .infer = 0.97})->stage, "infer");
  EXPECT_EQ(FindStreamBottleneck({.cpu = 0.95, .decode_cpu = 0.6, .infer_cpu = 0.3})->stage, "decode");
  const auto way = FindStreamBottleneck(
      {.cpu = 0.1, .in_time_percent = 10, .stage_ms = {{"transport", 120}, {"infer", 10}}});
  EXPECT_EQ(way->stage, "transport");
  EXPECT_EQ(way->share_of, "the latency");
  EXPECT_FALSE(FindStreamBottleneck({.cpu = 0.1, .stage_ms = {{"infer", 10}}}));
}

}  // namespace
}  // namespace weir::watch
