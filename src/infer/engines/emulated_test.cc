#include "infer/engines/emulated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <thread>

#include "infer/testing/answers.h"

namespace weir::infer {
namespace {

using testing::Floats;
using testing::FloatTensor;

const ModelSource kClassifier{.inputs = {{.name = "x", .shape = {-1, 4}}},
                              .outputs = {{.name = "y", .shape = {-1, 3}}}};

std::shared_ptr<Session> Load(std::string_view settings, const ModelSource& source, const Clock& clock) {
  auto options = ParseEmulatedOptions(settings);
  CHECK(options.has_value());
  auto session = MakeEmulatedEngine(*options, clock)->Load(source, {});
  CHECK(session.has_value());
  return *std::move(session);
}

std::vector<Tensor> Outputs(Session& session, const std::vector<Tensor>& inputs) {
  auto result = session.Run(inputs, {});
  CHECK(result.has_value());
  return std::move(result->outputs);
}

TEST(Emulated, SameBytesGiveTheSameAnswerInEveryBatch) {
  const ManualClock clock;
  const auto session = Load("", kClassifier, clock);
  const auto alone = Floats(Outputs(*session, {FloatTensor("x", {1, 4}, {5, 6, 7, 8})})[0]);
  const auto second = Outputs(*session, {FloatTensor("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})})[0];
  EXPECT_EQ(second.shape, (Shape{2, 3}));
  const auto both = Floats(second);
  EXPECT_TRUE(std::ranges::equal(alone, std::span(both).subspan(3)));
  EXPECT_FALSE(std::ranges::equal(alone, std::span(both).first(3)));
  EXPECT_TRUE(std::ranges::all_of(both, [](float x) { return x >= 0 && x < 1; }));
}

TEST(Emulated, OneDamagedBitChangesTheAnswer) {
  const ManualClock clock;
  const auto session = Load("", kClassifier, clock);
  const Tensor good = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  Tensor damaged = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  damaged.data.mutable_data()[7] ^= std::byte{1};
  EXPECT_NE(Floats(Outputs(*session, {good})[0]), Floats(Outputs(*session, {damaged})[0]));
}

TEST(Emulated, AnOutputLikeAnInputIsThatInputWithoutACopy) {
  const ManualClock clock;
  const ModelSource echo{.inputs = {{.name = "x", .shape = {-1, 4}}},
                         .outputs = {{.name = "y", .shape = {-1, 4}}}};
  const Tensor input = FloatTensor("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto outputs = Outputs(*Load("", echo, clock), {input});
  EXPECT_EQ(outputs[0].name, "y");
  EXPECT_EQ(outputs[0].shape, input.shape);
  EXPECT_EQ(outputs[0].data.data(), input.data.data());
}

TEST(Emulated, MakesEveryNumericTypeAndShape) {
  const ManualClock clock;
  ModelSource source{.inputs = {{.name = "x", .shape = {-1, 4}}}, .outputs = {}};
  for (int i = 0; i < static_cast<int>(DType::kBytes); ++i) {
    source.outputs.push_back(
        {.name = fmt::format("y{}", i), .dtype = static_cast<DType>(i), .shape = {-1, -1, 5}});
  }
  source.outputs.push_back({.name = "scalar", .dtype = DType::kFp32, .shape = {}});
  source.outputs.push_back({.name = "fixed", .dtype = DType::kFp32, .shape = {7}});
  const auto outputs =
      Outputs(*Load("", source, clock), {FloatTensor("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_EQ(outputs.size(), source.outputs.size());
  for (const Tensor& output : outputs) {
    EXPECT_EQ(output.data.size(), static_cast<size_t>(*ElementCount(output.shape)) * ByteSize(output.dtype));
  }
  EXPECT_EQ(outputs[0].shape, (Shape{2, 1, 5}));
  EXPECT_NE(outputs[static_cast<size_t>(DType::kInt8)].data.text(),
            outputs[static_cast<size_t>(DType::kUint8)].data.text());
}

TEST(Emulated, CountsStringsAsTheItemsOfTheirBatch) {
  const ManualClock clock;
  const ModelSource source{.inputs = {{.name = "s", .dtype = DType::kBytes, .shape = {-1}}},
                           .outputs = {{.name = "y", .shape = {-1, 2}}}};
  const auto session = Load("", source, clock);
  const auto strings = [](int64_t count, std::string_view data) {
    return Tensor{.name = "s", .dtype = DType::kBytes, .shape = {count}, .data = Bytes::Copy(data)};
  };
  const auto two = Floats(Outputs(*session, {strings(2, {"\2\0\0\0ab\1\0\0\0c", 11})})[0]);
  const auto one = Floats(Outputs(*session, {strings(1, {"\1\0\0\0c", 5})})[0]);
  EXPECT_TRUE(std::ranges::equal(one, std::span(two).subspan(2)));
}

TEST(Emulated, AsksForWhatItCannotGuess) {
  const ManualClock clock;
  const auto engine = MakeEmulatedEngine({}, clock);
  EXPECT_EQ(engine->Load({}, {}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine->Load(kClassifier, {.precision = "bf16"}).error().code, ErrorCode::kUnsupported);
  const ModelSource strings{.inputs = kClassifier.inputs,
                            .outputs = {{.name = "s", .dtype = DType::kBytes, .shape = {-1}}}};
  EXPECT_EQ(engine->Load(strings, {}).error().code, ErrorCode::kUnsupported);
  const ModelSource huge{.inputs = kClassifier.inputs,
                         .outputs = {{.name = "y", .shape = {-1, int64_t{1} << 40}}}};
  const auto result = Load("", huge, clock)->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {});
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST(Emulated, RefusesLargerBatchesThanItIsToldToTake) {
  const ManualClock clock;
  const auto session = Load("batch=1", kClassifier, clock);
  EXPECT_TRUE(session->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {}));
  const auto result = session->Run({FloatTensor("x", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}, {});
  EXPECT_EQ(result.error().message, "the emulated accelerator takes batches of at most 1 items, not 2");
}

TEST(Emulated, WithoutTimesItAnswersAtOnceEvenOnAClockThatStands) {
  const ManualClock clock;
  const auto session = Load("streams=3", kClassifier, clock);
  EXPECT_EQ(session->streams(), 3);
  EXPECT_EQ(session->callers(), 4);
  EXPECT_EQ(session->threads(), 0);
  const auto result = session->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {});
  EXPECT_EQ(result->started, clock.Now());
}

TEST(Emulated, TakesTheTimeItIsToldAndQueuesWhatComesMeanwhile) {
  const SteadyClock clock;
  const auto session = Load("base=2ms,per_item=1ms", kClassifier, clock);
  const Tensor input = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  const Instant begin = clock.Now();
  std::vector<std::jthread> callers;
  std::vector<Instant> started(3);
  for (Instant& start : started) {
    callers.emplace_back([&] { start = session->Run({input}, {})->started.value(); });
  }
  callers.clear();
  EXPECT_GE(clock.Now() - begin, 9ms);
  std::ranges::sort(started);
  EXPECT_GE(started[1] - started[0], 3ms);  // more where a thread came late
  EXPECT_GE(started[2] - started[1], 3ms);
  const auto stats = session->Stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->busy, std::vector<Duration>{9ms});
}

TEST(Emulated, SaysThatItsAnswersAreInvented) {
  const ManualClock clock;
  EXPECT_TRUE(Load("", kClassifier, clock)->invents_answers());
}

TEST(Emulated, StartedWithoutTimesAnswersInsideOfStart) {
  const ManualClock clock;
  const auto session = Load("", kClassifier, clock);
  ASSERT_TRUE(session->asynchronous());
  const Tensor input = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  std::vector<float> answer;
  session->Start({input}, {}, [&](Result<RunResult> result) { answer = Floats(result->outputs[0]); });
  EXPECT_EQ(answer, Floats(Outputs(*session, {input})[0]));
  ErrorCode refused{};
  session->Start({}, {}, [&](const Result<RunResult>& result) { refused = result.error().code; });
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument);
}

TEST(Emulated, StartedAnswersWhenItIsDueAndNotBefore) {
  const SteadyClock clock;
  const auto session = Load("base=2ms,per_item=1ms", kClassifier, clock);
  const Tensor input = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  std::latch all(3);
  std::vector<Instant> due(3), came(3);
  for (size_t i = 0; i < 3; ++i) {
    session->Start({input}, {}, [&, i](const Result<RunResult>& result) {
      came[i] = clock.Now();
      due[i] = result->done.value();
      all.count_down();
    });
  }
  all.wait();
  EXPECT_GE(due[1] - due[0], 3ms);
  EXPECT_GE(due[2] - due[1], 3ms);
  for (size_t i = 0; i < 3; ++i) EXPECT_GE(came[i], due[i]);
}

TEST(EmulatedOptions, AreReadFromTheirText) {
  const auto options = ParseEmulatedOptions("base=1ms,per_item=1.9ms,streams=2,jitter=0.05,batch=64,seed=9");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->timing.base, 1ms);
  EXPECT_EQ(options->timing.per_item, 1900us);
  EXPECT_EQ(options->timing.streams, 2);
  EXPECT_EQ(options->timing.jitter, 0.05);
  EXPECT_EQ(options->timing.seed.value(), 9u);
  EXPECT_EQ(options->max_batch, 64);
  EXPECT_EQ(ParseEmulatedOptions("base=0ms,per_item=250us")->timing.per_item, 250us);
  EXPECT_EQ(ParseEmulatedOptions("base=2s")->timing.base, 2s);
}

TEST(EmulatedOptions, ZeroNeedsNoUnit) { EXPECT_EQ(ParseEmulatedOptions("base=0")->timing.base, 0ms); }

TEST(EmulatedOptions, WhatIsWrongIsNamedWithWhatIsWanted) {
  const auto message = [](std::string_view settings) {
    const auto options = ParseEmulatedOptions(settings);
    if (options) return std::string("taken");
    EXPECT_EQ(options.error().code, ErrorCode::kInvalidArgument);
    return options.error().message;
  };
  EXPECT_EQ(message("speed=1ms"),
            "the emulated engine has no setting 'speed': its settings are base, per_item, streams, jitter, "
            "batch, seed");
  EXPECT_EQ(message("base=1"),
            "emulated: base is '1': give a time such as 250us, 1.9ms or 2s, at most 1000s");
  EXPECT_EQ(message("base=-1ms"),
            "emulated: base is '-1ms': give a time such as 250us, 1.9ms or 2s, at most 1000s");
  EXPECT_EQ(message("streams=0"), "emulated: streams is '0': give a whole number from 1 to 1024");
  EXPECT_EQ(message("jitter=1"), "emulated: jitter is '1': give a share of the cost, from 0 to below 1");
  EXPECT_EQ(message("base=1ms,base=2ms"), "emulated: base is given twice");
  for (const char* bad : {"base", "base=", "base=ms", "base=nanms", "base=1e9s", "base=1xms", "batch=0",
                          "batch=1.5", "jitter=-0.1", "seed=-1", "=", ",", "base=1ms,,streams=1"}) {
    EXPECT_NE(message(bad), "taken") << bad;
  }
}

}  // namespace
}  // namespace weir::infer
