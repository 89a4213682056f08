#include "infer/engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include "base/seed.h"
#include "base/thread.h"
#include "infer/runner.h"
#include "infer/testing/answers.h"
#include "infer/testing/tiny_onnx.h"

namespace weir::infer {
namespace {

using testing::Floats;
using testing::FloatTensor;
using testing::OnnxGraph;
using testing::OnnxType;
using testing::OnnxValue;
using testing::SaveOnnx;
using testing::SaveTinyOnnx;
using testing::TinyOnnx;
using testing::WriteOnnx;

// The models that are shared between checkouts, not part of this one.
std::string SharedModel(const std::string& name) {
  const char* const folder = std::getenv("WEIR_SHARED");
  return std::string(folder != nullptr ? folder : WEIR_SOURCE_DIR "/../shared") + "/data/models/" + name;
}

Tensor RandomTensor(const TensorInfo& info, int64_t batch, double high) {
  Shape shape = info.shape;
  for (int64_t& size : shape) size = size < 0 ? batch : size;
  Random random = Seed(3).MakeRandom();
  const auto count = static_cast<size_t>(ElementCount(shape).value());
  if (info.dtype == DType::kUint8) {
    std::string bytes(count, '\0');
    for (char& c : bytes) c = static_cast<char>(random.Integer(0, 255));
    return {.name = info.name, .dtype = info.dtype, .shape = shape, .data = Bytes::Copy(bytes)};
  }
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(random.Uniform(0, high));
  return FloatTensor(info.name, shape, values);
}

// Facts that hold for every engine that reads model files.
class FileEngine : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto engine = OpenEngine(GetParam(), clock_);
    if (!engine && engine.error().code == ErrorCode::kNotFound) GTEST_SKIP() << engine.error().message;
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }
  std::shared_ptr<Session> Load(const std::string& path, const SessionOptions& options = {}) {
    auto session = engine_->Load({.path = path}, options);
    EXPECT_TRUE(session) << session.error().message;
    return session ? *std::move(session) : nullptr;
  }
  std::shared_ptr<Session> LoadTiny(const TinyOnnx& tiny, const SessionOptions& options = {}) {
    return Load(SaveTinyOnnx(::testing::TempDir(), fmt::format("weir_tiny_{}.onnx", ::getpid()), tiny),
                options);
  }

  SteadyClock clock_;
  std::unique_ptr<Engine> engine_;
};
INSTANTIATE_TEST_SUITE_P(, FileEngine, ::testing::Values("onnxruntime", "openvino"),
                         [](const auto& engine) { return engine.param; });

TEST_P(FileEngine, SaysWhatItIs) {
  EXPECT_EQ(engine_->name(), GetParam());
  EXPECT_FALSE(engine_->version().empty());
}

TEST_P(FileEngine, ReadsNamesTypesAndFreeDimensionsFromTheModel) {
  const auto session = LoadTiny({.op_type = "Relu", .input_shape = {-1, 3, 8}, .output_shape = {-1, 3, 8}});
  EXPECT_EQ(session->inputs(), (std::vector<TensorInfo>{{"x", DType::kFp32, {-1, 3, 8}}}));
  EXPECT_EQ(session->outputs(), (std::vector<TensorInfo>{{"y", DType::kFp32, {-1, 3, 8}}}));
  EXPECT_EQ(session->precision(), "f32");
}

TEST_P(FileEngine, KeepsTheNamesThatTheFileDeclares) {
  const std::string folder = ::testing::TempDir();
  for (const auto& [first, then] : {std::pair("Relu", "Identity"), std::pair("Identity", "Relu")}) {
    const auto path =
        SaveTinyOnnx(folder, "weir_names_" + GetParam() + ".onnx", {.op_type = then, .first = first});
    const ModelSource source{.path = path, .inputs = {{.name = "x"}}, .outputs = {{.name = "y"}}};
    const auto session = engine_->Load(source, {});
    ASSERT_TRUE(session) << session.error().message;
    EXPECT_EQ((*session)->inputs()[0].name, "x") << first;
    EXPECT_EQ((*session)->outputs()[0].name, "y") << first;
  }
}

TEST_P(FileEngine, TakesNoMoreThreadsThanThereAre) {
  const auto session = LoadTiny({}, {.threads = 1000, .streams = 1000});
  EXPECT_EQ(session->threads(), UsableCpus());
  EXPECT_EQ(session->streams(), UsableCpus());
  EXPECT_EQ(session->callers(), UsableCpus());
  EXPECT_EQ(LoadTiny({}, {.threads = 1})->threads(), 1);
}

TEST_P(FileEngine, ComputesEveryBatch) {
  const auto session = LoadTiny({.op_type = "Neg"});
  for (const int64_t batch : {1, 3, 3, 3, 1, 1, 2}) {  // the same again, and another
    const Tensor input = RandomTensor(session->inputs()[0], batch, 1);
    const auto result = session->Run({input}, {});
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), 1u);
    EXPECT_EQ(result->outputs[0].name, "y");
    EXPECT_EQ(result->outputs[0].shape, (Shape{batch, 4}));
    auto negated = Floats(input);
    for (float& x : negated) x = -x;
    EXPECT_EQ(Floats(result->outputs[0]), negated);
  }
}

TEST_P(FileEngine, AnAnswerStaysWhenTheNextIsComputed) {
  auto session = LoadTiny({});
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) {
    auto result =
        session->Run({FloatTensor("x", {1, 4}, std::vector<float>(4, static_cast<float>(i)))}, {"y"});
    ASSERT_TRUE(result) << result.error().message;
    kept.push_back(result->outputs[0]);
  }
  session.reset();
  engine_.reset();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Floats(kept[i]), std::vector<float>(4, static_cast<float>(i)));
}

// Bytes of two rows of four elements, as a caller has them who uses the memory again.
std::string TypedBytes(DType dtype, int round) {
  std::string bytes(8 * ByteSize(dtype), '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(dtype == DType::kBool      ? (i + static_cast<size_t>(round)) % 2
                                 : i % ByteSize(dtype) == 0 ? static_cast<int>(i) + round
                                                            : 0);
  return bytes;
}

constexpr std::pair<OnnxType, DType> kNumbers[] = {
    {OnnxType::kBool, DType::kBool},     {OnnxType::kUint8, DType::kUint8},
    {OnnxType::kUint16, DType::kUint16}, {OnnxType::kUint32, DType::kUint32},
    {OnnxType::kUint64, DType::kUint64}, {OnnxType::kInt8, DType::kInt8},
    {OnnxType::kInt16, DType::kInt16},   {OnnxType::kInt32, DType::kInt32},
    {OnnxType::kInt64, DType::kInt64},   {OnnxType::kFloat16, DType::kFp16},
    {OnnxType::kBfloat16, DType::kBf16}, {OnnxType::kFloat, DType::kFp32},
    {OnnxType::kDouble, DType::kFp64}};

TEST_P(FileEngine, AnOutputThatIsAnInputLiesInMemoryOfItsOwn) {
  for (const auto& [type, dtype] : kNumbers) {
    SCOPED_TRACE(ToString(dtype));
    const OnnxValue x{"x", type, Shape{-1, 4}}, y{"y", type, Shape{-1, 4}};
    const auto path = SaveOnnx(::testing::TempDir(), fmt::format("weir_pass_{}.onnx", ::getpid()),
                               {.nodes = {{"Identity", {"x"}, {"y"}}}, .inputs = {x}, .outputs = {y, x}});
    const auto session = Load(path);
    ASSERT_TRUE(session);
    for (int round = 0; round < 4; ++round) {
      const int64_t rows = round % 2 == 0 ? 2 : 1;
      const std::string sent =
          TypedBytes(dtype, round).substr(0, static_cast<size_t>(rows) * 4 * ByteSize(dtype));
      auto memory = std::make_shared<std::string>(sent);
      std::vector<Tensor> input = {
          {.name = "x",
           .dtype = dtype,
           .shape = {rows, 4},
           .data = Bytes::Wrap(memory, reinterpret_cast<std::byte*>(memory->data()), memory->size())}};
      const auto result = session->Run(input, {});
      ASSERT_TRUE(result) << result.error().message;
      std::ranges::fill(*memory, '\x55');  // the next call's
      input.clear();
      memory.reset();
      ASSERT_EQ(result->outputs.size(), 2u);
      for (const Tensor& output : result->outputs) {
        EXPECT_EQ(output.dtype, dtype) << output.name;
        EXPECT_EQ(output.shape, (Shape{rows, 4})) << output.name;
        EXPECT_EQ(output.data.text(), sent) << output.name;
      }
      const auto alone =
          session->Run({{.name = "x", .dtype = dtype, .shape = {rows, 4}, .data = Bytes::Copy(sent)}}, {"x"});
      ASSERT_TRUE(alone) << alone.error().message;
      EXPECT_EQ(alone->outputs[0].data.text(), sent);
    }
  }
}

TEST_P(FileEngine, AConstantThatIsAnOutputOutlivesTheModel) {
  const Tensor seven = FloatTensor("c", {2}, {7, 8});
  const auto path =
      SaveOnnx(::testing::TempDir(), fmt::format("weir_constant_{}.onnx", ::getpid()),
               {.nodes = {{"Neg", {"x"}, {"y"}}},
                .inputs = {{"x", OnnxType::kFloat, Shape{-1, 4}}},
                .outputs = {{"y", OnnxType::kFloat, Shape{-1, 4}}, {"c", OnnxType::kFloat, Shape{2}}},
                .constants = {{{"c", OnnxType::kFloat, Shape{2}}, std::string(seven.data.text())}}});
  auto session = Load(path);
  ASSERT_TRUE(session);
  std::vector<Tensor> kept;
  for (int i = 0; i < 3; ++i) {
    auto result = session->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {});
    ASSERT_TRUE(result) << result.error().message;
    kept.push_back(result->outputs[1]);
  }
  session.reset();
  for (const Tensor& output : kept) EXPECT_EQ(Floats(output), Floats(seven));
}

TEST_P(FileEngine, TakesEmptyTensors) {
  for (const bool passes : {false, true}) {
    const OnnxValue x{"x", OnnxType::kFloat, Shape{-1, -1}}, y{"y", OnnxType::kFloat, Shape{-1, -1}};
    const auto path =
        SaveOnnx(::testing::TempDir(), fmt::format("weir_empty_{}.onnx", ::getpid()),
                 {.nodes = {{"Neg", {"x"}, {"y"}}}, .inputs = {x}, .outputs = {passes ? x : y}});
    const auto session = Load(path);
    ASSERT_TRUE(session);
    for (const Shape& shape : {Shape{2, 0}, Shape{0, 3}, Shape{2, 1}, Shape{0, 0}}) {
      const auto count = static_cast<size_t>(*ElementCount(shape));
      const auto result = session->Run({FloatTensor("x", shape, std::vector<float>(count, 5))}, {});
      ASSERT_TRUE(result) << ToString(shape) << result.error().message;
      EXPECT_EQ(result->outputs[0].shape, shape);
      EXPECT_EQ(Floats(result->outputs[0]), std::vector<float>(count, passes ? 5 : -5));
    }
  }
}

TEST_P(FileEngine, TakesAModelWithoutInputs) {
  const Tensor seven = FloatTensor("c", {2}, {7, 8});
  const auto path =
      SaveOnnx(::testing::TempDir(), fmt::format("weir_source_{}.onnx", ::getpid()),
               {.nodes = {{"Identity", {"c"}, {"y"}}},
                .inputs = {},
                .outputs = {{"y", OnnxType::kFloat, Shape{2}}},
                .constants = {{{"c", OnnxType::kFloat, Shape{2}}, std::string(seven.data.text())}}});
  const auto result = Load(path)->Run({}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(Floats(result->outputs[0]), Floats(seven));
}

TEST_P(FileEngine, BelievesTheDeclarationsWhereTheFileTellsNoShape) {
  const OnnxGraph graph{.nodes = {{"Neg", {"x"}, {"y"}}}, .inputs = {{"x"}}, .outputs = {{"y"}}};
  ModelSource source{
      .path = SaveOnnx(::testing::TempDir(), fmt::format("weir_open_{}.onnx", ::getpid()), graph),
      .inputs = {{.name = "x", .shape = {-1, 2}}},
      .outputs = {{.name = "y", .shape = {-1}, .any_rank = true}}};
  const auto narrowed = engine_->Load(source, {});
  if (GetParam() == "openvino" && !narrowed) {
    EXPECT_THAT(narrowed.error().message, ::testing::HasSubstr("dynamic rank"));
    return;
  }
  ASSERT_TRUE(narrowed) << narrowed.error().message;
  EXPECT_TRUE((*narrowed)->Run({FloatTensor("x", {2, 2}, {1, 2, 3, 4})}, {}));
  EXPECT_FALSE((*narrowed)->Run({FloatTensor("x", {4}, {1, 2, 3, 4})}, {}));
  source.inputs[0] = {.name = "x", .shape = {-1}, .any_rank = true};
  const auto open = engine_->Load(source, {});
  ASSERT_TRUE(open) << open.error().message;
  for (const Shape& shape : {Shape{4}, Shape{2, 2}, Shape{1, 2, 2}}) {
    const auto result = (*open)->Run({FloatTensor("x", shape, {1, 2, 3, 4})}, {});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs[0].shape, shape);
    EXPECT_EQ(Floats(result->outputs[0]), (std::vector<float>{-1, -2, -3, -4}));
  }
}

TEST_P(FileEngine, LetsACallReplaceAValueOfTheFileOrRefuses) {
  const OnnxValue scale{"scale", OnnxType::kFloat, Shape{2}};
  const OnnxGraph graph{.nodes = {{"Mul", {"x", "scale"}, {"y"}}},
                        .inputs = {{"x", OnnxType::kFloat, Shape{-1, 2}}, scale},
                        .outputs = {{"y", OnnxType::kFloat, Shape{-1, 2}}},
                        .constants = {{scale, std::string(FloatTensor("", {2}, {2, 3}).data.text())}}};
  ModelSource source{
      .path = SaveOnnx(::testing::TempDir(), fmt::format("weir_scale_{}.onnx", ::getpid()), graph),
      .inputs = {{.name = "x", .shape = {-1, 2}}, {.name = "scale", .shape = {2}, .optional = true}},
      .outputs = {{.name = "y", .shape = {-1, 2}}}};
  const auto session = engine_->Load(source, {});
  if (GetParam() == "openvino") {
    ASSERT_FALSE(session);
    EXPECT_THAT(session.error().message, ::testing::HasSubstr("input 'scale' has a value in the model file"));
    source.inputs.pop_back();
    ASSERT_TRUE(engine_->Load(source, {}));
    return;
  }
  ASSERT_TRUE(session) << session.error().message;
  const Tensor x = FloatTensor("x", {1, 2}, {1, 1});
  EXPECT_EQ(Floats((*session)->Run({x}, {})->outputs[0]), (std::vector<float>{2, 3}));
  const auto replaced = (*session)->Run({x, FloatTensor("scale", {2}, {10, 20})}, {});
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(Floats(replaced->outputs[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(Floats((*session)->Run({x}, {})->outputs[0]), (std::vector<float>{2, 3}));
  EXPECT_FALSE((*session)->Run({x, FloatTensor("scale", {1}, {10})}, {}));
}

TEST_P(FileEngine, LeavesOutWhatCannotBeSent) {
  const OnnxGraph graph{.nodes = {{"Neg", {"x"}, {"y"}}, {"SequenceConstruct", {"x", "x"}, {"s"}}},
                        .inputs = {{"x", OnnxType::kFloat, Shape{-1, 4}}},
                        .outputs = {{"y", OnnxType::kFloat, Shape{-1, 4}}}};
  std::string bytes = WriteOnnx(graph);
  const std::string path = ::testing::TempDir() + fmt::format("weir_sequence_{}.onnx", ::getpid());
  // The output "s" is a sequence of tensors, which ValueInfo does not write.
  const std::string tensor = testing::BytesField(1, testing::NumberField(1, 1));
  const std::string sequence = testing::BytesField(4, testing::BytesField(1, tensor));
  const std::string s =
      testing::BytesField(12, testing::BytesField(1, "s") + testing::BytesField(2, sequence));
  std::ofstream(path, std::ios::binary) << bytes << testing::BytesField(7, s);
  const auto session = engine_->Load({.path = path}, {});
  if (!session) {  // openvino has no sequences
    EXPECT_EQ(GetParam(), "openvino");
    return;
  }
  EXPECT_EQ((*session)->outputs(), (std::vector<TensorInfo>{{"y", DType::kFp32, {-1, 4}}}));
  const auto result = (*session)->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_EQ(Floats(result->outputs[0]), (std::vector<float>{-1, -2, -3, -4}));
}

TEST_P(FileEngine, HoldsWhatItComputesOrRefuses) {
  const auto session = LoadTiny({.input_type = OnnxType::kInt64, .output_type = OnnxType::kInt64});
  const auto run = [&](int64_t value) {
    const std::vector<int64_t> values(4, value);
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 4 * sizeof value);
    return std::pair(
        session->Run({{.name = "x", .dtype = DType::kInt64, .shape = {1, 4}, .data = Bytes::Copy(bytes)}},
                     {}),
        std::string(bytes));
  };
  for (const int64_t value : {int64_t{0}, int64_t{-5}, int64_t{INT32_MAX}, int64_t{INT32_MIN},
                              int64_t{INT32_MAX} + 1, int64_t{INT64_MIN}, int64_t{INT64_MAX}}) {
    const auto [result, sent] = run(value);
    if (result) {
      EXPECT_EQ(result->outputs[0].data.text(), sent) << value;
    } else {
      EXPECT_EQ(GetParam(), "openvino");
      EXPECT_GT(std::abs(static_cast<double>(value)), INT32_MAX);
      EXPECT_THAT(result.error().message, ::testing::HasSubstr("use the onnxruntime engine"));
    }
  }
}

TEST_P(FileEngine, TakesOutputsWhoseShapeTheDataDecide) {
  const auto session = LoadTiny(
      {.op_type = "NonZero", .output_type = OnnxType::kInt64, .input_shape = {-1}, .output_shape = {1, -1}});
  for (const auto& values : std::vector<std::vector<float>>{
           {0, 1, 0, 1}, {0, 1, 1, 0}, {1, 1, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}, {1, 1, 0, 1}}) {
    std::vector<int64_t> expected;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) expected.push_back(static_cast<int64_t>(i));
    }
    const auto result = session->Run({FloatTensor("x", {4}, values)}, {});
    ASSERT_TRUE(result) << result.error().message;
    const Tensor& output = result->outputs[0];
    EXPECT_EQ(output.dtype, DType::kInt64);
    EXPECT_EQ(output.shape, (Shape{1, std::ssize(expected)}));
    const std::string_view bytes(reinterpret_cast<const char*>(expected.data()),
                                 expected.size() * sizeof(int64_t));
    EXPECT_EQ(output.data.text(), bytes);
  }
}

TEST_P(FileEngine, GivesTheOutputsWantedWhicheverWereWantedBefore) {
  const auto session =
      LoadTiny({.op_type = "Split", .input_shape = {2, 4}, .output_shape = {1, 4}, .outputs = {"y", "z"}});
  const Tensor input = FloatTensor("x", {2, 4}, {1, 1, 1, 1, 2, 2, 2, 2});
  for (const auto& wanted :
       std::vector<std::vector<std::string>>{{"y"}, {"z"}, {"z", "y"}, {"y"}, {"y", "z"}}) {
    const auto result = session->Run({input}, wanted);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(result->outputs[i].name, wanted[i]);
      EXPECT_EQ(Floats(result->outputs[i]), std::vector<float>(4, wanted[i] == "y" ? 1 : 2));
    }
  }
}

TEST_P(FileEngine, TakesAPayloadThatLiesAcrossItsAlignment) {
  const auto session = LoadTiny({});
  const Tensor straight = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  const Bytes memory = Bytes::Copy("." + std::string(straight.data.text()));
  const auto result = session->Run({{.name = "x", .shape = {1, 4}, .data = memory.Slice(1, 16)}}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(Floats(result->outputs[0]), Floats(straight));
}

TEST_P(FileEngine, NamesWhatIsWrongWithACall) {
  const auto session = LoadTiny({});
  const Tensor input = FloatTensor("x", {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(session->Run({}, {}).error(), (Error{ErrorCode::kInvalidArgument, "input 'x' is missing"}));
  EXPECT_EQ(session->Run({input}, {"z"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(session->Run({FloatTensor("x", {1, 5}, {1, 2, 3, 4, 5})}, {}).error().message,
            "input 'x': shape is [1,5], the model takes [-1,4]");
}

TEST_P(FileEngine, RefusesWhatItCannotServe) {
  EXPECT_EQ(engine_->Load({.path = ::testing::TempDir() + "weir_none.onnx"}, {}).error().code,
            ErrorCode::kNotFound);
  const std::string folder = ::testing::TempDir();
  const auto broken =
      SaveTinyOnnx(folder, "weir_broken_" + GetParam() + ".onnx", {.op_type = "NoSuchOperator"});
  EXPECT_FALSE(engine_->Load({.path = broken}, {}));
  const auto strings = SaveTinyOnnx(folder, "weir_strings_" + GetParam() + ".onnx",
                                    {.input_type = OnnxType::kString, .output_type = OnnxType::kString});
  if (GetParam() == "openvino") {
    const auto refused = engine_->Load({.path = strings}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(refused.error().message.find("use the onnxruntime engine"), std::string::npos);
  }
  const auto tiny = SaveTinyOnnx(folder, "weir_precision_" + GetParam() + ".onnx", {});
  EXPECT_FALSE(engine_->Load({.path = tiny}, {.precision = "f8"}));
}

TEST_P(FileEngine, AnswersCallersSideBySide) {
  const auto session = LoadTiny({.op_type = "Neg"}, {.streams = 0});
  std::vector<std::jthread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < session->callers() + 1; ++caller) {  // one more than it takes: it waits
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 200; ++i) {
        const auto value = static_cast<float>(1000 * caller + i);
        const auto result = session->Run({FloatTensor("x", {1, 4}, std::vector<float>(4, value))}, {});
        if (!result || Floats(result->outputs[0]) != std::vector<float>(4, -value)) ++wrong;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(WarmBatches, AreAtMostHalfAsLargeAgain) {
  EXPECT_THAT(WarmBatches(1), ::testing::ElementsAre(1));
  EXPECT_THAT(WarmBatches(3), ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(WarmBatches(8), ::testing::ElementsAre(1, 2, 3, 4, 6, 8));
  EXPECT_THAT(WarmBatches(50), ::testing::ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 50));
}

TEST(OpenVino, KeepsCompiledModelsInItsCacheFolder) {
  const SteadyClock clock;
  const auto engine = OpenEngine("openvino", clock);
  if (!engine) GTEST_SKIP() << engine.error().message;
  const std::string folder = ::testing::TempDir() + "weir_openvino_cache";
  std::filesystem::remove_all(folder);
  const ModelSource source{.path =
                               SaveTinyOnnx(::testing::TempDir(), "weir_cached.onnx", {.op_type = "Neg"})};
  for (int i = 0; i < 2; ++i) {
    const auto session = (*engine)->Load(source, {.cache_dir = folder});
    ASSERT_TRUE(session) << session.error().message;
    EXPECT_FALSE(std::filesystem::is_empty(folder));
    const auto result = (*session)->Run({FloatTensor("x", {1, 4}, {1, 2, 3, 4})}, {"y"});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(Floats(result->outputs[0]), (std::vector<float>{-1, -2, -3, -4}));
  }
}

TEST(OpenVino, ComputesAtThePrecisionAskedForOrNotAtAll) {
  const SteadyClock clock;
  const auto engine = OpenEngine("openvino", clock);
  if (!engine) GTEST_SKIP() << engine.error().message;
  const ModelSource source{.path = SaveTinyOnnx(::testing::TempDir(), "weir_half.onnx", {.op_type = "Neg"})};
  for (const std::string precision : {"bf16", "f16"}) {
    const auto session = (*engine)->Load(source, {.precision = precision});
    if (session) {
      EXPECT_EQ((*session)->precision(), precision);
    } else {
      EXPECT_EQ(session.error().code, ErrorCode::kUnsupported);
      EXPECT_NE(session.error().message.find("it would compute in"), std::string::npos);
    }
  }
}

TEST(OnnxRuntime, NamesTheEngineThatHasOtherPrecisions) {
  const SteadyClock clock;
  const auto engine = OpenEngine("onnxruntime", clock);
  if (!engine) GTEST_SKIP() << engine.error().message;
  const auto session = (*engine)->Load({.path = "any.onnx"}, {.precision = "bf16"});
  EXPECT_EQ(session.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(session.error().message.find("openvino"), std::string::npos);
}

// A tensor of strings as it comes over a wire.
Tensor Strings(Shape shape, const std::vector<std::string>& elements) {
  std::string data;
  for (const std::string& element : elements) {
    const auto length = static_cast<uint32_t>(element.size());
    data.append(reinterpret_cast<const char*>(&length), sizeof length);
    data += element;
  }
  return {.name = "x", .dtype = DType::kBytes, .shape = std::move(shape), .data = Bytes::Copy(data)};
}

class OnnxRuntimeStrings : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = OpenEngine("onnxruntime", clock_);
    if (!engine) GTEST_SKIP() << engine.error().message;
    engine_ = *std::move(engine);
    const auto path = SaveTinyOnnx(::testing::TempDir(), fmt::format("weir_strings_{}.onnx", ::getpid()),
                                   {.input_type = OnnxType::kString,
                                    .output_type = OnnxType::kString,
                                    .input_shape = {-1, 2},
                                    .output_shape = {-1, 2}});
    auto session = engine_->Load({.path = path}, {});
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }

  SteadyClock clock_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<Session> session_;
};

TEST_F(OnnxRuntimeStrings, ComeBackAsTheyWereSentWhateverTheirBytes) {
  EXPECT_EQ(session_->inputs(), (std::vector<TensorInfo>{{"x", DType::kBytes, {-1, 2}}}));
  EXPECT_EQ(session_->outputs(), (std::vector<TensorInfo>{{"y", DType::kBytes, {-1, 2}}}));
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"", ""},
      {"plain", ""},
      {std::string("zero\0inside", 11), "\xff\xfe not UTF-8", std::string(100'000, 'x'), "é"}};
  for (const auto& elements : cases) {
    const Tensor input = Strings({std::ssize(elements) / 2, 2}, elements);
    const auto result = session_->Run({input}, {});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs[0].dtype, DType::kBytes);
    EXPECT_EQ(result->outputs[0].shape, input.shape);
    EXPECT_EQ(result->outputs[0].data.text(), input.data.text());
  }
}

TEST_F(OnnxRuntimeStrings, AreRefusedWhereTheDataDoNotFitTheShape) {
  const auto refusal = [&](Tensor input) { return session_->Run({std::move(input)}, {}).error(); };
  EXPECT_EQ(refusal(Strings({2, 2}, {"a", "b", "c"})).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(Strings({1, 2}, {"a", "b", "c"})).code, ErrorCode::kInvalidArgument);
  Tensor cut = Strings({1, 2}, {"a", "b"});
  cut.data = cut.data.Slice(0, cut.data.size() - 1);
  EXPECT_EQ(refusal(cut).code, ErrorCode::kInvalidArgument);
}

TEST_F(OnnxRuntimeStrings, AreNotMoreThanTheLimit) {
  const int64_t count = (int64_t{1} << 22) + 2;
  const Tensor many{.name = "x",
                    .dtype = DType::kBytes,
                    .shape = {count / 2, 2},
                    .data = Bytes::Allocate(static_cast<size_t>(count) * 4)};
  const auto result = session_->Run({many}, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(),
            (Error{ErrorCode::kInvalidArgument,
                   "input 'x' has 4194306 strings, at most 4194304 are taken: use smaller batches"}));
}

TEST_F(OnnxRuntimeStrings, OfSeveralCallsAreComputedAsOneBatch) {
  auto runner = Runner::Create(
      session_, clock_, {.batching = {.max_batch = 8, .combine = true, .preferred = {3}, .max_wait = 10s}});
  ASSERT_TRUE(runner) << runner.error().message;
  testing::Answers answers;
  const std::vector<std::vector<std::string>> calls = {{"a", ""}, {"bcd", "e", "ff", std::string(300, 'g')}};
  for (const auto& elements : calls) {
    Call call = answers.MakeCall("");
    call.request.inputs = {Strings({std::ssize(elements) / 2, 2}, elements)};
    (*runner)->Submit(std::move(call));
  }
  const auto got = answers.Wait(2);
  for (const auto& answered : got) {
    ASSERT_TRUE(answered.result) << answered.result.error().message;
    EXPECT_EQ(answered.result->executed_batch, 3);
    const Tensor& output = answered.result->outputs[0];
    const auto& sent = calls[output.shape[0] == 1 ? 0 : 1];
    EXPECT_EQ(output.data.text(), Strings({std::ssize(sent) / 2, 2}, sent).data.text());
  }
}

TEST(OpenEngine, NamesWhatThereIsInsteadOfAnUnknownEngine) {
  const SteadyClock clock;
  EXPECT_EQ(OpenEngine("tensorflow", clock).error().message,
            "unknown engine 'tensorflow': use onnxruntime, openvino or emulated:base=1ms,per_item=1.9ms");
  EXPECT_EQ(OpenEngine("onnxruntime:threads=2", clock).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenEngine("emulated:speed=9", clock).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenEngine("emulated:base=1ms", clock).value()->name(), "emulated");
  EXPECT_EQ(OpenEngine("emulated", clock).value()->name(), "emulated");
}

struct RealModel {
  std::string file;
  std::string precision;
  double high;       // of the values that go in
  double tolerance;  // share of the largest value that comes out
};

const char* const kQuantised = "f32 (quantised model: int8 where the engine can)";

// Two libraries that share no code give the same answers.
class RealModels : public ::testing::TestWithParam<RealModel> {};
INSTANTIATE_TEST_SUITE_P(, RealModels,
                         ::testing::Values(RealModel{"mnist.onnx", "f32", 255, 1e-4},
                                           RealModel{"mobilenet_v1_025_224_fp32.onnx", "f32", 1, 1e-4},
                                           RealModel{"kws_dscnn.onnx", kQuantised, 1, 0.01},
                                           RealModel{"resnet8_cifar10.onnx", kQuantised, 255, 0.2},
                                           RealModel{"mobilenet_v1_025_128_u8.onnx", kQuantised, 255, 0.2}),
                         [](const auto& model) {
                           return model.param.file.substr(0, model.param.file.find('.'));
                         });

TEST_P(RealModels, HaveTheSameAnswersOnBothEngines) {
  const std::string path = SharedModel(GetParam().file);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path << "; WEIR_SHARED names the folder";
  const SteadyClock clock;
  std::vector<std::vector<float>> answers;
  for (const char* name : {"onnxruntime", "openvino"}) {
    const auto engine = OpenEngine(name, clock);
    if (!engine) GTEST_SKIP() << engine.error().message;
    const auto session = (*engine)->Load({.path = path}, {});
    ASSERT_TRUE(session) << session.error().message;
    EXPECT_EQ((*session)->precision(), GetParam().precision);
    const int64_t batch = GetParam().file == "mnist.onnx" ? 1 : 3;
    for (int i = 0; i < 2; ++i) {
      const auto result =
          (*session)->Run({RandomTensor((*session)->inputs()[0], batch, GetParam().high)}, {});
      ASSERT_TRUE(result) << result.error().message;
      answers.push_back(Floats(result->outputs[0]));
    }
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[2], answers[3]);
  ASSERT_EQ(answers[0].size(), answers[2].size());
  const double scale =
      std::abs(*std::ranges::max_element(answers[0], {}, [](float x) { return std::abs(x); }));
  double difference = 0;
  for (size_t i = 0; i < answers[0].size(); ++i) {
    difference = std::max<double>(difference, std::abs(answers[0][i] - answers[2][i]));
  }
  EXPECT_LE(difference, GetParam().tolerance * scale);
}

}  // namespace
}  // namespace weir::infer
