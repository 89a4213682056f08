#include "serve/inference_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <cstring>
#include <future>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

#include "infer/testing/answers.h"
#include "serve/testing/fake_models.h"

namespace weir::serve {
namespace {

using infer::DType;
using infer::Tensor;
using infer::testing::Answered;
using infer::testing::Answers;
using infer::testing::Floats;
using infer::testing::FloatTensor;
using testing::FakeModel;
using testing::FakeSession;
using ::testing::HasSubstr;

class InferencePathTest : public ::testing::Test {
 protected:
  void TearDown() override {
    loaded_.reset();
    let_go_.get_future().wait();
  }
  // Serves `model` on `session`; the default is a batch of up to 4 rows "x" of 4 floats, given back.
  void Serve(model::Model model, std::shared_ptr<FakeSession> session) {
    session_ = session;
    owned_ = testing::Load(std::move(model), "3", session, clock_, metrics_);
    // Whoever drops the last reference must not be the one who ends the model.
    loaded_ = std::shared_ptr<LoadedModel>(owned_.get(), [this](LoadedModel*) { let_go_.set_value(); });
  }
  void Serve(int max_batch = 4, FakeSession::Options options = {}) {
    auto session = std::make_shared<FakeSession>(std::move(options));
    Serve(FakeModel("m", *session, max_batch), session);
  }

  Answered Ask(oip::InferRequest request, Payload payload = Payload::kTensor) {
    return Ask(path_, std::move(request), payload);
  }
  Answered Ask(InferencePath& path, oip::InferRequest request, Payload payload = Payload::kTensor) {
    std::shared_ptr<ServedModel> served(loaded_, loaded_->Find(payload));
    const size_t before = answers_.count();
    infer::Call call = answers_.MakeCall("");
    path.Start(std::move(served), std::move(request), std::move(call.completion));
    return answers_.Wait(before + 1).back();
  }
  static oip::InferRequest Request(std::vector<Tensor> inputs) {
    oip::InferRequest request;
    request.request.inputs = std::move(inputs);
    request.request.id = "id";
    request.input_regions.resize(request.request.inputs.size());
    return request;
  }
  Error Refusal(oip::InferRequest request) {
    const Answered answered = Ask(std::move(request));
    EXPECT_FALSE(answered.result.has_value());
    return answered.result ? Error{} : answered.result.error();
  }
  static Tensor Row(int64_t rows = 1) {
    return FloatTensor("x", {rows, 4}, std::vector<float>(static_cast<size_t>(rows) * 4, 1));
  }
  oip::ModelStatistics Statistics() {
    return loaded_->Find(Payload::kTensor)->statistics.Get(WallTime(clock_.Now()));
  }

  const SteadyClock clock_;
  Metrics metrics_;
  FailureLog failures_{clock_, [](LogLevel, const std::string&) {}};
  Answers answers_;
  InferencePath path_{{.decode_threads = 2}, nullptr, clock_, failures_};
  const SharedMemoryRegistry regions_;
  InferencePath as_triton_{
      {.decode_threads = 1, .compat = oip::Compat::kTriton}, &regions_, clock_, failures_};
  std::shared_ptr<FakeSession> session_;
  std::promise<void> let_go_;
  std::unique_ptr<LoadedModel> owned_;
  std::shared_ptr<LoadedModel> loaded_;
};

TEST_F(InferencePathTest, AnswersUnderTheNameItWasAskedBy) {
  Serve();
  const Answered answered = Ask(Request({Row(2)}));
  ASSERT_TRUE(answered.result.has_value()) << answered.result.error().message;
  EXPECT_EQ(answered.result->model, "m");
  EXPECT_EQ(answered.result->version, "3");
  EXPECT_EQ(answered.result->id, "id");
  EXPECT_EQ(answered.result->outputs[0].shape, (infer::Shape{2, 4}));
  EXPECT_EQ(Statistics().inference_count, 2U);
  EXPECT_EQ(Statistics().execution_count, 1U);
}

TEST_F(InferencePathTest, TellsItsDurationsWhereItIsAskedTo) {
  Serve();
  EXPECT_FALSE(Ask(Request({Row()})).result->durations);
  oip::InferRequest request = Request({Row()});
  request.request.durations = true;
  request.received = clock_.Now();
  request.first_byte = request.received - 7ms;
  const Instant first_byte = request.first_byte;
  const Answered answered = Ask(std::move(request));
  ASSERT_TRUE(answered.result.has_value()) << answered.result.error().message;
  ASSERT_TRUE(answered.result->durations.has_value());
  EXPECT_EQ(answered.result->durations->receive, Duration(7ms));
  EXPECT_GE(answered.result->durations->whole(), *answered.times.done - first_byte);
  EXPECT_LE(answered.result->durations->whole(), clock_.Now() - first_byte);
}

TEST_F(InferencePathTest, GivesTheSessionTheBytesThatCame) {
  Serve();
  const Tensor row = Row();
  ASSERT_TRUE(Ask(Request({row})).result.has_value());
  EXPECT_EQ(session_->batches()[0][0].data.data(), row.data.data());
}

TEST_F(InferencePathTest, RefusesWhatDoesNotFitAndNamesIt) {
  Serve();
  const auto words = [&](std::vector<Tensor> inputs) {
    const Error error = Refusal(Request(std::move(inputs)));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    return error.message;
  };
  EXPECT_THAT(words({FloatTensor("x", {1, 3}, {1, 2, 3})}),
              HasSubstr("model \"m\": input \"x\" has shape [1,3]"));
  EXPECT_THAT(words({FloatTensor("x", {4}, {1, 2, 3, 4})}), HasSubstr("shape [4]"));
  EXPECT_THAT(words({FloatTensor("z", {1, 4}, {1, 2, 3, 4})}), HasSubstr("no input \"z\"; it has: x"));
  EXPECT_THAT(words({}), HasSubstr("\"x\" is missing"));
  EXPECT_THAT(words({Row(), Row()}), HasSubstr("twice"));
  EXPECT_THAT(words({Row(5)}), HasSubstr("over its max_batch_size of 4"));
  EXPECT_THAT(words({Row(0)}), HasSubstr("at least 1"));
  Tensor whole = Row();
  whole.dtype = DType::kInt32;
  EXPECT_THAT(words({whole}), HasSubstr("INT32, and the model takes FP32"));
  EXPECT_EQ(Statistics().fail.count, 0U);  // they say nothing of the model
  EXPECT_TRUE(session_->batches().empty());
}

// A request for the best `count` of `classes` scores, which rise.
oip::InferRequest Ranking(int64_t classes, int64_t count) {
  std::vector<float> scores(static_cast<size_t>(classes));
  std::iota(scores.begin(), scores.end(), 0.0F);
  oip::InferRequest request;
  request.request.inputs = {FloatTensor("x", {1, classes}, scores)};
  request.input_regions.resize(1);
  request.outputs = {{.name = "x", .classification = count}};
  return request;
}

TEST_F(InferencePathTest, RanksManyClassesOnTheThreadsOfThePool) {
  const infer::TensorInfo any{.name = "x", .shape = {-1, -1}};
  Serve(4, {.inputs = {any}, .outputs = {any}});
  const auto thread_of = [&](int64_t classes) {
    std::promise<std::string> name;
    path_.Start({loaded_, loaded_->Find(Payload::kTensor)}, Ranking(classes, 2),
                infer::Completion([&](const Result<infer::Response>&, const infer::Times&) {
                  std::array<char, 16> text{};
                  ::pthread_getname_np(::pthread_self(), text.data(), text.size());
                  name.set_value(text.data());
                }));
    return name.get_future().get().substr(0, 6);
  };
  EXPECT_EQ(thread_of(10), "engine");
  EXPECT_EQ(thread_of(200'000), "decode");
  const Answered many = Ask(Ranking(200'000, 2));
  ASSERT_TRUE(many.result.has_value()) << many.result.error().message;
  EXPECT_THAT(std::string(many.result->outputs[0].data.text()), HasSubstr("199999.000000:199999"));
  EXPECT_EQ(Statistics().success.count, 3U);
  EXPECT_THAT(Refusal(Ranking(200'000, 70'000)).message, HasSubstr("ask for at most 65536"));
}

TEST_F(InferencePathTest, RefusesTooManyClassesBeforeTheModelRuns) {
  const infer::TensorInfo fixed{.name = "x", .shape = {-1, 70'000}};
  Serve(4, {.inputs = {fixed}, .outputs = {fixed}});
  EXPECT_THAT(Refusal(Ranking(70'000, 70'000)).message, HasSubstr("output \"x\": classification"));
  EXPECT_TRUE(session_->batches().empty());
}

TEST_F(InferencePathTest, RanksNothingForAClientThatLeft) {
  std::stop_source left;
  const infer::TensorInfo any{.name = "x", .shape = {-1, -1}};
  Serve(4, {.inputs = {any}, .outputs = {any}, .answer = [&](const std::vector<Tensor>& inputs) {
              left.request_stop();
              return infer::RunResult{.outputs = inputs};
            }});
  oip::InferRequest request = Ranking(200'000, 2);
  request.request.cancelled = left.get_token();
  EXPECT_EQ(Refusal(std::move(request)).code, ErrorCode::kCancelled);
}

TEST_F(InferencePathTest, RefusesOutputsThatAreNotThereOrCannotBeRanked) {
  Serve();
  oip::InferRequest request = Request({Row()});
  request.outputs = {{.name = "nope"}};
  EXPECT_THAT(Refusal(std::move(request)).message, HasSubstr("no output \"nope\""));
  request = Request({Row()});
  request.outputs = {{.name = "x"}, {.name = "x"}};
  EXPECT_THAT(Refusal(std::move(request)).message, HasSubstr("asked for twice"));
}

TEST_F(InferencePathTest, RefusesInTritonsWordsWhereItIsAskedTo) {
  Serve();
  const auto words = [&](oip::InferRequest request) {
    const Answered answered = Ask(as_triton_, std::move(request));
    return answered.result ? "" : answered.result.error().message;
  };
  Tensor whole = Row();
  whole.dtype = DType::kInt32;
  EXPECT_EQ(words(Request({FloatTensor("z", {1, 4}, {1, 2, 3, 4})})),
            "unexpected inference input 'z' for model 'm'");
  EXPECT_EQ(words(Request({whole})),
            "[request id: id] inference input 'x' data-type is 'INT32', but model 'm' expects 'FP32'");
  EXPECT_EQ(words(Request({FloatTensor("x", {1, 3}, {1, 2, 3})})),
            "[request id: id] unexpected shape for input 'x' for model 'm'. Expected [-1,4], got [1,3]. ");
  EXPECT_EQ(words(Request({Row(5)})), "[request id: id] inference request batch-size must be <= 4 for 'm'");
  EXPECT_THAT(words(Request({})), HasSubstr("expected 1 inputs but got 0 inputs for model 'm'"));
  oip::InferRequest request = Request({Row()});
  request.outputs = {{.name = "nope"}};
  EXPECT_EQ(words(std::move(request)), "unexpected inference output 'nope' for model 'm'");
  request = Request({Tensor{.name = "x", .shape = {1, 4}}});
  request.input_regions = {oip::RegionPart{.region = "r", .byte_size = 16}};
  EXPECT_EQ(words(std::move(request)), "Unable to find shared memory region: 'r'");
  request = Request({Row()});
  request.timeout = std::chrono::microseconds(1);
  EXPECT_THAT(words(std::move(request)), HasSubstr("[request id: id] Request timeout expired ("));
  EXPECT_EQ(words(Request({Row()})), "");
}

TEST_F(InferencePathTest, RanksWhereItIsAskedTo) {
  Serve();
  oip::InferRequest request = Request({FloatTensor("x", {1, 4}, {1, 4, 2, 3})});
  request.outputs = {{.name = "x", .classification = 2}};
  const Answered answered = Ask(std::move(request));
  ASSERT_TRUE(answered.result.has_value());
  EXPECT_EQ(answered.result->outputs[0].dtype, DType::kBytes);
  EXPECT_EQ(answered.result->outputs[0].shape, (infer::Shape{1, 2}));
}

TEST_F(InferencePathTest, TakesShapesAsTheyAreWithoutABatchDimension) {
  Serve(0, {.inputs = {{.name = "x", .shape = {-1}}}, .outputs = {{.name = "x", .shape = {-1}}}});
  EXPECT_EQ(Ask(Request({FloatTensor("x", {7}, std::vector<float>(7))})).result->outputs[0].shape,
            (infer::Shape{7}));
  EXPECT_EQ(Statistics().inference_count, 1U);
}

TEST_F(InferencePathTest, TakesOnlyTheBatchThatAModelIsFixedTo) {
  auto session = std::make_shared<FakeSession>();
  model::Model model = FakeModel("m", *session, 4);
  model.fixed_batch = 2;
  Serve(std::move(model), session);
  EXPECT_TRUE(Ask(Request({Row(2)})).result.has_value());
  EXPECT_THAT(Refusal(Request({Row(1)})).message, HasSubstr("takes 2 only"));
}

TEST_F(InferencePathTest, ReshapesForTheModelAndBack) {
  auto session = std::make_shared<FakeSession>(FakeSession::Options{
      .inputs = {{.name = "x", .shape = {-1, 2, -1}}}, .outputs = {{.name = "x", .shape = {-1, 2, -1}}}});
  model::Model model = FakeModel("m", *session, 4);
  model.reshapes_inputs = true;
  model.client_inputs[0].shape = {-1, 2, 1, -1};
  model.client_outputs[0].shape = {-1, 1, 2, -1};
  Serve(std::move(model), session);
  const Answered answered = Ask(Request({FloatTensor("x", {1, 2, 1, 3}, std::vector<float>(6))}));
  ASSERT_TRUE(answered.result.has_value()) << answered.result.error().message;
  EXPECT_EQ(session->batches()[0][0].shape, (infer::Shape{1, 2, 3}));
  EXPECT_EQ(answered.result->outputs[0].shape, (infer::Shape{1, 1, 2, 3}));
}

TEST_F(InferencePathTest, CountsTheEnginesFailuresAndProbesBeforeItIsDead) {
  bool broken = true;
  Serve(4, {.answer = [&](const std::vector<Tensor>& inputs) -> Result<infer::RunResult> {
          if (broken) return Fail(ErrorCode::kInternal, "burnt out");
          return infer::RunResult{.outputs = inputs};
        }});
  broken = false;
  ASSERT_TRUE(loaded_->WarmUp().has_value());
  broken = true;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Refusal(Request({Row()})).message, HasSubstr("burnt out"));
  EXPECT_TRUE(loaded_->suspect());
  EXPECT_FALSE(loaded_->dead());
  EXPECT_EQ(Statistics().fail.count, 3U);
  const auto probe = [&] {
    std::promise<void> ended;
    loaded_->BeginProbe([&] { ended.set_value(); });
    ended.get_future().wait();
  };
  probe();
  EXPECT_TRUE(loaded_->dead());
  EXPECT_THAT(loaded_->CheckEngine(clock_.Now()).error().message, HasSubstr("fails every call"));
  broken = false;
  probe();
  EXPECT_FALSE(loaded_->dead());
  EXPECT_FALSE(loaded_->suspect());
}

TEST_F(InferencePathTest, BeginsAProbeWithoutWaitingForTheEngine) {
  Serve();
  ASSERT_TRUE(loaded_->WarmUp().has_value());
  session_->Close();
  int ended = 0;
  loaded_->BeginProbe([&] { ++ended; });
  loaded_->BeginProbe([&] { ended += 100; });  // one is under way
  EXPECT_EQ(ended, 0);
  session_->Open();
  ASSERT_TRUE(Ask(Request({Row()})).result.has_value());  // behind the probe
  EXPECT_EQ(ended, 1);
}

TEST_F(InferencePathTest, TakesAModelWithoutInputsForOneRow) {
  auto session = std::make_shared<FakeSession>(FakeSession::Options{
      .inputs = {}, .answer = [](const std::vector<Tensor>&) -> Result<infer::RunResult> {
        return infer::RunResult{.outputs = {FloatTensor("x", {1, 4}, {1, 2, 3, 4})}};
      }});
  Serve(FakeModel("m", *session, 4), session);
  EXPECT_TRUE(Ask(Request({})).result.has_value());
  EXPECT_EQ(Statistics().inference_count, 1U);
}

TEST_F(InferencePathTest, SaysOnceThatLoneCallersFillNoBatches) {
  auto session = std::make_shared<FakeSession>();
  model::Model model = FakeModel("m", *session, 4);
  model.config.dynamic_batching.emplace();
  Serve(std::move(model), session);
  int said = 0;
  for (int i = 0; i < 2500; ++i) {
    said += loaded_->NoteCall() ? 1 : 0;
    loaded_->NoteAnswer();
  }
  EXPECT_EQ(said, 1);
}

TEST_F(InferencePathTest, SaysNothingWhereCallsCameTogether) {
  auto session = std::make_shared<FakeSession>();
  model::Model model = FakeModel("m", *session, 4);
  model.config.dynamic_batching.emplace();
  Serve(std::move(model), session);
  loaded_->NoteCall();
  for (int i = 0; i < 2500; ++i) {
    EXPECT_FALSE(loaded_->NoteCall());
    loaded_->NoteAnswer();
  }
}

TEST_F(InferencePathTest, HasNoUseForSharedMemoryUnlessItIsAllowed) {
  Serve();
  oip::InferRequest request = Request({Tensor{.name = "x", .shape = {1, 4}}});
  request.input_regions = {oip::RegionPart{.region = "r", .byte_size = 16}};
  EXPECT_EQ(Refusal(std::move(request)).code, ErrorCode::kUnsupported);
}

// A model of 2x2 pictures: its input is [-1,3,2,2] FP32, made of pixels x / 255 - 0.5.
class PictureTest : public InferencePathTest {
 protected:
  void SetUp() override {
    auto session = std::make_shared<FakeSession>(
        FakeSession::Options{.inputs = {{.name = "x", .shape = {-1, 3, 2, 2}}},
                             .outputs = {{.name = "x", .shape = {-1, 3, 2, 2}}}});
    model::Model model = FakeModel("m", *session, 4);
    model.recipe.emplace();
    model.recipe->geometry.resize = dataset::Size{2, 2};
    model.recipe->scale = 1 / 255.0;
    model.recipe->mean = {0.5, 0.5, 0.5};
    Serve(std::move(model), session);
  }
  static Tensor Pixels(int64_t count) {
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < count * 12; ++i) pixels.push_back(static_cast<uint8_t>(i));
    return {.name = "x",
            .dtype = DType::kUint8,
            .shape = {count, 2, 2, 3},
            .data = Bytes::Copy(std::as_bytes(std::span(pixels)))};
  }
  static Tensor Pictures(const std::vector<std::string>& encoded) {
    std::string bytes;
    for (const std::string& picture : encoded) {
      const auto length = static_cast<uint32_t>(picture.size());
      bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
      bytes += picture;
    }
    return {.name = "x", .dtype = DType::kBytes, .shape = {std::ssize(encoded)}, .data = Bytes::Copy(bytes)};
  }
  // A BMP of 2x2 pixels, bottom row first, BGR, rows padded to 8 bytes: those of Pixels(1).
  static std::string Bmp() {
    std::string bmp(
        "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\2\0\0\0\1\0\x18\0\0\0\0\0\x10\0\0\0"
        "\x13\x0b\0\0\x13\x0b\0\0\0\0\0\0\0\0\0\0",
        54);
    bmp += std::string("\x08\x07\x06\x0b\x0a\x09\0\0", 8) + std::string("\x02\x01\0\x05\x04\x03\0\0", 8);
    return bmp;
  }
};

TEST_F(PictureTest, NormalisesPixelsAsTheRecipeSays) {
  const Answered answered = Ask(Request({Pixels(2)}), Payload::kPixels);
  ASSERT_TRUE(answered.result.has_value()) << answered.result.error().message;
  EXPECT_EQ(answered.result->model, "m.pixels");
  const Tensor seen = session_->batches()[0][0];
  EXPECT_EQ(seen.shape, (infer::Shape{2, 3, 2, 2}));
  const std::vector<float> values = Floats(seen);
  EXPECT_FLOAT_EQ(values[0], 0.F - 0.5F);
  EXPECT_FLOAT_EQ(values[1], 3.F / 255 - 0.5F);  // the next pixel of the same channel
  EXPECT_FLOAT_EQ(values[4], 1.F / 255 - 0.5F);  // the next channel
  EXPECT_FLOAT_EQ(values[12], 12.F / 255 - 0.5F);
}

TEST_F(PictureTest, MakesTheSameOfAPicture) {
  ASSERT_TRUE(Ask(Request({Pixels(1)}), Payload::kPixels).result.has_value());
  const Answered answered = Ask(Request({Pictures({Bmp(), Bmp(), Bmp()})}), Payload::kImage);
  ASSERT_TRUE(answered.result.has_value()) << answered.result.error().message;
  const auto batches = session_->batches();
  ASSERT_EQ(batches[1][0].shape.front(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batches[1][0].data.Slice(static_cast<size_t>(i) * 48, 48).text(), batches[0][0].data.text());
  }
}

TEST_F(PictureTest, NamesTheFirstBrokenPictureAndItsReason) {
  const Answered answered =
      Ask(Request({Pictures({Bmp(), "no picture", Bmp().substr(0, 60), ""})}), Payload::kImage);
  ASSERT_FALSE(answered.result.has_value());
  EXPECT_EQ(answered.result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(answered.result.error().message, HasSubstr("picture 1 is rejected: not-a-picture"));
  EXPECT_TRUE(session_->batches().empty());
}

TEST_F(PictureTest, DoesNotPrepareForAClientThatLeft) {
  std::stop_source left;
  left.request_stop();
  oip::InferRequest request = Request({Pictures({Bmp()})});
  request.request.cancelled = left.get_token();
  EXPECT_EQ(Ask(std::move(request), Payload::kImage).result.error().code, ErrorCode::kCancelled);
  request = Request({Pictures({Bmp()})});
  request.request.deadline = clock_.Now() - 1ms;
  EXPECT_EQ(Ask(std::move(request), Payload::kImage).result.error().code, ErrorCode::kDeadline);
}

TEST_F(PictureTest, TellsTheFormsOfItsNames) {
  EXPECT_EQ(loaded_->Find(Payload::kPixels)->inputs[0].shape, (infer::Shape{-1, 2, 2, 3}));
  EXPECT_EQ(loaded_->Find(Payload::kImage)->inputs[0].dtype, DType::kBytes);
  EXPECT_EQ(loaded_->Find(Payload::kImage)->inputs[0].shape, (infer::Shape{-1}));
}

TEST_F(PictureTest, TellsTheLayoutOfItsPictures) {
  const auto format = [&](Payload payload) {
    return loaded_->Find(payload)->config.json["input"][0]["format"].get<std::string>();
  };
  EXPECT_EQ(format(Payload::kTensor), "FORMAT_NCHW");
  EXPECT_EQ(format(Payload::kPixels), "FORMAT_NHWC");
  EXPECT_EQ(format(Payload::kImage), "FORMAT_NONE");
}

}  // namespace
}  // namespace weir::serve
