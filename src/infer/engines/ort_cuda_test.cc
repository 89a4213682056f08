#include "infer/engines/ort_cuda.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "gpu/testing/cuda_library.h"
#include "infer/engines/cuda_code.h"
#include "infer/engines/cuda_libraries.h"
#include "infer/engines/ort_cuda_instance.h"
#include "infer/testing/answers.h"
#include "infer/testing/tiny_onnx.h"

namespace weir::infer {
namespace {

using namespace testing;  // NOLINT: the helpers of tests, and gmock's matchers
using ::testing::HasSubstr;

class OrtCuda : public ::testing::Test {
 protected:
  OrtCuda() {
    ::setenv("WEIR_CUDA", FAKES "/cuda", 1);
    ::setenv("WEIR_FAKE_ORT_BASE", WEIR_DEPS_DIR "/onnxruntime/onnxruntime/capi/libonnxruntime.so.1", 1);
    ::setenv("WEIR_FAKE_ORT_CUDA", "", 1);
  }
  Result<std::shared_ptr<Session>> Load(const TinyOnnx& tiny, SessionOptions options = {},
                                        const char* device = "cuda:0") {
    options.devices = *ParseDevices(device);
    const std::string path = SaveTinyOnnx(
        ::testing::TempDir(), fmt::format("weir_cuda_{}_{}.onnx", ::getpid(), tiny.op_type), tiny);
    engine_ = TRY(OpenEngine("onnxruntime", clock_, options.devices));
    return engine_->Load({.path = path}, options);
  }
  std::string Refusal(const char* device, SessionOptions options = {}) {
    const auto loaded = Load({.op_type = "Neg"}, std::move(options), device);
    return loaded ? "loaded" : loaded.error().message;
  }
  static Tensor Input(int64_t rows, float value = 1) {
    return FloatTensor("x", {rows, 4}, std::vector<float>(static_cast<size_t>(rows) * 4, value));
  }

  SteadyClock clock_;
  gpu::CudaLibrary fake_{FAKE_CUDA};  // the engine finds it under the driver's name: it is open
  std::unique_ptr<Engine> engine_;
};

TEST_F(OrtCuda, ComputesEveryBatchAndTellsTheStages) {
  const auto session = Load({.op_type = "Neg"});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ((*session)->threads(), 0);
  EXPECT_EQ((*session)->streams(), 1);
  EXPECT_EQ((*session)->precision(), "f32");
  EXPECT_FALSE((*session)->invents_answers());
  fake_.state().bytes_per_ms = 16;
  for (const int64_t rows : {1, 3, 2, 8}) {
    const auto ran = (*session)->Run({Input(rows, 2)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->outputs[0].shape, (Shape{rows, 4}));
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, -2));
    ASSERT_TRUE(ran->stages);
    EXPECT_EQ(ran->stages->upload, rows * Duration(1ms));
    EXPECT_EQ(ran->stages->compute, rows * Duration(500us));
    EXPECT_EQ(ran->stages->download, rows * Duration(1ms));
  }
}

TEST_F(OrtCuda, TakesItsOwnMemoryOfInputsWithoutACopy) {
  const auto session = Load({.op_type = "Neg"});
  ASSERT_TRUE(session) << session.error().message;
  const int before = fake_.state().blocks;
  Tensor input = Input(2);
  input.data = (*session)->MakeInputMemory(input.data.size());
  EXPECT_EQ(fake_.state().blocks, before + 1);
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  std::memcpy(input.data.mutable_data(), values, sizeof values);
  const auto ran = (*session)->Run({input}, {});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(Floats(ran->outputs[0])[7], -8);
  // On the device: the input and the output; on the host: the output, and no place for the input.
  EXPECT_EQ(fake_.state().blocks, before + 1 + 3);
  ASSERT_TRUE((*session)->Run({Input(2)}, {}));
  EXPECT_EQ(fake_.state().blocks, before + 1 + 4);
}

TEST_F(OrtCuda, ComputesASmallerBatchAsAWarmOne) {
  const auto session = Load({.op_type = "Neg"}, {.batches = {1, 4, 8}});
  ASSERT_TRUE(session) << session.error().message;
  const std::pair<int64_t, int64_t> computed[] = {{1, 1}, {3, 4}, {4, 4}, {5, 8}, {9, 9}};
  for (const auto& [rows, as] : computed) {
    const auto ran = (*session)->Run({Input(rows, 5)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->outputs[0].shape, (Shape{rows, 4}));
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, -5));
    EXPECT_EQ(ran->stages->compute, as * Duration(500us));
  }
}

TEST_F(OrtCuda, TakesTheOtherOrderWhereChannelsLastFail) {
  const TinyOnnx tiny{.op_type = "Neg"};
  const std::string path =
      SaveTinyOnnx(::testing::TempDir(), fmt::format("weir_cuda_{}_f16.onnx", ::getpid()), tiny);
  std::ifstream file(path, std::ios::binary);
  const std::string onnx((std::istreambuf_iterator<char>(file)), {});
  ::setenv("WEIR_FAKE_ORT_CUDA", "channels_first=1", 1);
  engine_ = OpenEngine("onnxruntime", clock_, *ParseDevices("cuda:0")).value();
  const auto session = engine_->Load({.path = path, .onnx = onnx}, {.precision = "f16"});
  ASSERT_TRUE(session) << session.error().message;
  const auto ran = (*session)->Run({Input(1, 4)}, {});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(Floats(ran->outputs[0])[0], -4);
}

TEST_F(OrtCuda, ReplaysEveryRecordedSizeInMemoryThatIsStillThere) {
  const auto session = Load({.op_type = "Neg"}, {.streams = 2, .cuda_graph = true, .batches = {1, 2, 4, 8}});
  ASSERT_TRUE(session) << session.error().message;
  float value = 1;
  for (const int64_t rows : {2, 4, 2, 8, 1, 2, 3, 7, 8, 2, 1}) {
    const auto ran = (*session)->Run({Input(rows, ++value)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->outputs[0].shape, (Shape{rows, 4}));
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, -value)) << rows;
  }
}

TEST_F(OrtCuda, ReplaysNothingOnceMemoryHasGrown) {
  const auto session = Load({.op_type = "Neg"}, {.cuda_graph = true, .batches = {1}});
  ASSERT_TRUE(session) << session.error().message;
  float value = 1;
  for (const int64_t rows : {1, 16, 1, 1, 2, 1}) {
    const auto ran = (*session)->Run({Input(rows, ++value)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, -value)) << rows;
  }
}

TEST_F(OrtCuda, ReplaysAReducedModelToo) {
  const TinyOnnx tiny{.op_type = "Neg"};
  const std::string path =
      SaveTinyOnnx(::testing::TempDir(), fmt::format("weir_cuda_{}_f16_graph.onnx", ::getpid()), tiny);
  engine_ = OpenEngine("onnxruntime", clock_, *ParseDevices("cuda:0")).value();
  const auto session = engine_->Load({.path = path, .onnx = WriteTinyOnnx(tiny)},
                                     {.precision = "f16", .cuda_graph = true, .batches = {1, 4}});
  ASSERT_TRUE(session) << session.error().message;
  float value = 1;
  for (const int64_t rows : {1, 4, 1, 4, 3}) {
    const auto ran = (*session)->Run({Input(rows, ++value)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, -value)) << rows;
  }
}

TEST_F(OrtCuda, RefusesGraphsOfModelsWithAnotherFreeDimension) {
  const auto session = Load({.op_type = "Neg", .input_shape = {-1, -1}, .output_shape = {-1, -1}},
                            {.cuda_graph = true, .batches = {1}});
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message, HasSubstr("a graph is recorded for one shape"));
}

TEST_F(OrtCuda, RecordsWhileAnotherModelServes) {
  const auto serving = Load({.op_type = "Abs"});
  ASSERT_TRUE(serving) << serving.error().message;
  const auto engine = std::move(engine_);
  std::atomic<bool> over = false;
  std::jthread caller([&] {
    for (int64_t rows = 1; !over; rows = rows % 64 + 1) {
      Tensor input = Input(rows, 3);
      const Bytes memory = (*serving)->MakeInputMemory(input.data.size());
      EXPECT_TRUE((*serving)->Run({input}, {}));
    }
  });
  for (int i = 0; i < 5; ++i) {
    const auto session = Load({.op_type = "Neg"}, {.cuda_graph = true, .batches = {1, 2, 3}});
    EXPECT_TRUE(session) << session.error().message;
  }
  over = true;
}

TEST_F(OrtCuda, AnOutputThatIsAnInputIsTheCallersOwn) {
  const OnnxValue x{"x", OnnxType::kFloat, Shape{-1, 4}}, y{"y", OnnxType::kFloat, Shape{-1, 4}};
  const std::string path = SaveOnnx(::testing::TempDir(), fmt::format("weir_cuda_{}_pass.onnx", ::getpid()),
                                    {.nodes = {{"Neg", {"x"}, {"y"}}}, .inputs = {x}, .outputs = {x, y}});
  engine_ = OpenEngine("onnxruntime", clock_, *ParseDevices("cuda:0")).value();
  const auto session = engine_->Load({.path = path}, {});
  ASSERT_TRUE(session) << session.error().message;
  for (const float value : {1.F, 2.F, 3.F}) {
    const auto ran = (*session)->Run({Input(2, value)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(8, value));
    EXPECT_EQ(Floats(ran->outputs[1]), std::vector<float>(8, -value));
    const auto alone = (*session)->Run({Input(1, value)}, {"x"});
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(Floats(alone->outputs[0]), std::vector<float>(4, value));
  }
}

TEST_F(OrtCuda, TakesOutputsWhoseFirstDimensionIsNoBatch) {
  const auto session = Load(
      {.op_type = "NonZero", .output_type = OnnxType::kInt64, .input_shape = {-1}, .output_shape = {-1, -1}});
  ASSERT_TRUE(session) << session.error().message;
  const OnnxGraph graph{.nodes = {{"Flatten", {"x"}, {"y"}, IntAttribute("axis", 0)}},
                        .inputs = {{"x", OnnxType::kFloat, Shape{-1, 4}}},
                        .outputs = {{"y", OnnxType::kFloat, Shape{-1, -1}}}};
  const OnnxGraph transposed{
      .nodes = {{"Reshape", {"x", "s"}, {"y"}}},
      .inputs = {{"x", OnnxType::kFloat, Shape{-1, 4}}},
      .outputs = {{"y", OnnxType::kFloat, Shape{-1, 2}}},
      .constants = {{{"s", OnnxType::kInt64, Shape{2}},
                     std::string("\xff\xff\xff\xff\xff\xff\xff\xff\2\0\0\0\0\0\0\0", 16)}}};
  for (const bool flattens : {true, false}) {
    const OnnxGraph& each = flattens ? graph : transposed;
    const std::string path =
        SaveOnnx(::testing::TempDir(), fmt::format("weir_cuda_{}_first.onnx", ::getpid()), each);
    const auto loaded = engine_->Load({.path = path}, {.batches = {1, 4}});
    ASSERT_TRUE(loaded) << loaded.error().message;
    for (const int64_t rows : {1, 2, 3}) {
      const auto ran = (*loaded)->Run({Input(rows, 5)}, {});
      ASSERT_TRUE(ran) << ran.error().message;
      EXPECT_EQ(Floats(ran->outputs[0]), std::vector<float>(static_cast<size_t>(rows) * 4, 5));
      EXPECT_EQ(ran->outputs[0].shape, (flattens ? Shape{1, rows * 4} : Shape{rows * 2, 2}));
    }
  }
}

TEST_F(OrtCuda, ComputesRowsThatSeeOneAnotherAtTheirOwnNumber) {
  const OnnxGraph graph{.nodes = {{"Softmax", {"x"}, {"y"}, IntAttribute("axis", 0)}},
                        .inputs = {{"x", OnnxType::kFloat, Shape{-1, 4}}},
                        .outputs = {{"y", OnnxType::kFloat, Shape{-1, 4}}}};
  const std::string path =
      SaveOnnx(::testing::TempDir(), fmt::format("weir_cuda_{}_rows.onnx", ::getpid()), graph);
  engine_ = OpenEngine("onnxruntime", clock_, *ParseDevices("cuda:0")).value();
  const auto session = engine_->Load({.path = path}, {.batches = {1, 4, 8}});
  ASSERT_TRUE(session) << session.error().message;
  for (const int64_t rows : {3, 5, 8, 2}) {
    const auto ran = (*session)->Run({Input(rows, 5)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    for (const float share : Floats(ran->outputs[0])) EXPECT_FLOAT_EQ(share, 1.F / static_cast<float>(rows));
  }
}

TEST_F(OrtCuda, ALostDeviceEndsNoProcess) {
  {
    const auto session = Load({.op_type = "Neg"}, {.cuda_graph = true, .batches = {1}});
    ASSERT_TRUE(session) << session.error().message;
    fake_.state().stuck_after = fake_.state().waits;
    EXPECT_FALSE((*session)->Run({Input(1)}, {}));
  }
  fake_.state().stuck_after = -1;
  fake_.state().stuck = 0;
}

TEST_F(OrtCuda, RecordsTheBatchesOfItsList) {
  const auto session = Load({.op_type = "Neg"}, {.cuda_graph = true, .batches = {2}});
  ASSERT_TRUE(session) << session.error().message;
  for (const int64_t rows : {2, 3}) {
    const auto ran = (*session)->Run({Input(rows, 5)}, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(Floats(ran->outputs[0])[0], -5);
  }
}

TEST_F(OrtCuda, TakesOutputsWhoseShapeTheDataDecide) {
  const auto session = Load(
      {.op_type = "NonZero", .output_type = OnnxType::kInt64, .input_shape = {-1}, .output_shape = {1, -1}});
  ASSERT_TRUE(session) << session.error().message;
  const auto ran = (*session)->Run({FloatTensor("x", {4}, {0, 1, 0, 1})}, {});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->outputs[0].shape, (Shape{1, 2}));
}

TEST_F(OrtCuda, ABatchWithoutMemoryFailsAndTheModelStays) {
  const auto session = Load({.op_type = "Neg"});
  ASSERT_TRUE(session);
  ::setenv("WEIR_FAKE_ORT_CUDA", "oom_at=8", 1);
  const auto failed = (*session)->Run({Input(8)}, {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("Failed to allocate memory"));
  EXPECT_FALSE((*session)->lost());
  const auto ran = (*session)->Run({Input(7, 3)}, {});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(Floats(ran->outputs[0])[0], -3);
}

TEST_F(OrtCuda, MemoryOfItsOwnThatIsNotThereFailsTheBatchAlone) {
  const auto session = Load({.op_type = "Neg"});
  ASSERT_TRUE(session && (*session)->Run({Input(1)}, {}));
  gpu::FakeDeviceFull full(fake_.state());
  const auto failed = (*session)->Run({Input(64)}, {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("smaller batches"));
  EXPECT_FALSE((*session)->lost());
}

TEST_F(OrtCuda, ALostDeviceIsToldForGood) {
  const auto session = Load({.op_type = "Neg"});
  ASSERT_TRUE(session && (*session)->Run({Input(1)}, {}));
  fake_.state().stuck_after = fake_.state().waits;
  const auto failed = (*session)->Run({Input(1)}, {});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("cuda:0 is lost"));
  EXPECT_THAT((*session)->lost().value_or(""), HasSubstr("start it again"));
  EXPECT_FALSE((*session)->Run({Input(1)}, {}));
  fake_.state().stuck = 0;
}

TEST_F(OrtCuda, InstancesSpreadOverTheDevices) {
  fake_.state().count = 2;
  const auto session = Load({.op_type = "Neg"}, {.streams = 2}, "cuda:all");
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ((*session)->streams(), 4);
  EXPECT_THAT((*session)->gpus(), ::testing::ElementsAre(0, 1));
  EXPECT_EQ((*session)->gpu_uuids()[1], "GPU-11000000-0000-0000-0000-000000000000");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*session)->Run({Input(1)}, {}));
  const auto stats = (*session)->Stats();
  ASSERT_EQ(stats->busy.size(), 2u);
  EXPECT_GT(stats->busy[0], Duration{});
  EXPECT_GT(stats->busy[1], Duration{});
}

TEST_F(OrtCuda, NamesADeviceThatIsNotThere) {
  EXPECT_THAT(Refusal("cuda:1"), HasSubstr("cuda:0 (Fake H200, GPU-10000000"));
  fake_.state().count = 0;
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("CUDA_VISIBLE_DEVICES"));
  fake_.state().count = 1;
  fake_.state().devices[0].name = "Fake H200 MIG 1g.18gb";
  EXPECT_EQ(Refusal("cuda:MIG-10000000"), "loaded");
  EXPECT_THAT(Refusal("cuda:GPU-10000000"), HasSubstr("MIG-10000000"));
  EXPECT_THAT(Refusal("cuda:MIG-20000000"), HasSubstr("CUDA_VISIBLE_DEVICES=MIG-UUID"));
  fake_.state().count = 2;
  fake_.state().devices[0].name = "Fake H200";
  EXPECT_THAT(Refusal("cuda:GPU-1"), HasSubstr("begins several identifiers"));
  EXPECT_EQ(Refusal("cuda:GPU-11"), "loaded");
}

TEST_F(OrtCuda, ChecksDriverCardAndMemoryBeforeItLoads) {
  fake_.state().version = 12040;
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("serves CUDA 12.4 and the engine wants CUDA 13"));
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("./dev setup --cuda 12"));
  fake_.state().version = 13000;
  fake_.state().devices[0].major = 7;
  EXPECT_THAT(Refusal("cuda:0"),
              HasSubstr("has compute capability 7.0, and the engine holds kernels for 9.0"));
  fake_.state().devices[0].major = 9;
  fake_.state().devices[0].memory_total = fake_.state().devices[0].memory_used;
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("0 MiB of memory left"));
}

TEST_F(OrtCuda, NamesLibrariesThatAreMissingWithTheCommandThatInstallsThem) {
  ::setenv("WEIR_CUDA", "/nowhere", 1);
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("./dev setup --cuda"));
}

TEST_F(OrtCuda, ComputesNothingOnTheCpu) {
  ::setenv("WEIR_FAKE_ORT_CUDA", "left_over=Neg", 1);
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("has no kernels for any of its nodes"));
  EXPECT_THAT(Refusal("cuda:0"), HasSubstr("--device cpu"));
}

TEST_F(OrtCuda, RefusesPrecisionsThatItWouldNotKeep) {
  EXPECT_THAT(Refusal("cuda:0", {.precision = "int8"}), HasSubstr("as float"));
  EXPECT_THAT(Refusal("cuda:0", {.precision = "f8"}), HasSubstr("f32, tf32, f16 or bf16"));
  EXPECT_EQ(Refusal("cuda:0", {.precision = "tf32"}), "loaded");
  EXPECT_EQ(Refusal("cuda:0", {.cuda_graph = true, .batches = {1, 8}}), "loaded");
}

TEST_F(OrtCuda, NormalisesPixelsOnTheDevice) {
  SessionOptions options;
  options.pixels =
      PixelInput{.input = "x", .width = 2, .height = 1, .channels = 3, .planar = true, .table = {}};
  for (int channel = 0; channel < 3; ++channel) {
    for (int level = 0; level < 256; ++level)
      options.pixels->table.push_back(static_cast<float>(1000 * channel + level));
  }
  const auto session =
      Load({.op_type = "Neg", .input_shape = {-1, 3, 1, 2}, .output_shape = {-1, 3, 1, 2}}, options);
  ASSERT_TRUE(session) << session.error().message;
  fake_.state().uploaded = 0;
  const Tensor pixels{.name = "x",
                      .dtype = DType::kUint8,
                      .shape = {1, 1, 2, 3},
                      .data = Bytes::Copy(std::string_view("\1\2\3\4\5\6", 6))};
  const auto ran = (*session)->Run({pixels}, {});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(Floats(ran->outputs[0]), (std::vector<float>{-1, -4, -1002, -1005, -2003, -2006}));
  EXPECT_EQ(fake_.state().uploaded, 6u);  // a quarter of the floats
  const auto floats = (*session)->Run({FloatTensor("x", {1, 3, 1, 2}, std::vector<float>(6, 7))}, {});
  ASSERT_TRUE(floats) << floats.error().message;
  EXPECT_EQ(Floats(floats->outputs[0])[5], -7);
}

TEST(NodesOnCpu, AreReadFromTheLog) {
  EXPECT_EQ(
      NodesOnCpu("Node placements\n Node(s) placed on [CUDAExecutionProvider]. Number of nodes: 1\n  Conv "
                 "(c)\n Node(s) placed on [CPUExecutionProvider]. Number of nodes: 2\n  Shape (/s)\n  Gather "
                 "(/g)\nelse\n"),
      "Shape (/s), Gather (/g)");
  EXPECT_EQ(NodesOnCpu(" All nodes placed on [CUDAExecutionProvider]. Number of nodes: 3\n"), "");
}

TEST(CudaCode, RunsOnItsOwnMajorNumberAndPtxOnLaterOnes) {
  const std::vector<CudaCode> code = {{7, 5, false}, {8, 0, false}, {9, 0, false}};
  EXPECT_TRUE(RunsOn(code, 8, 6));
  EXPECT_FALSE(RunsOn(code, 7, 0));
  EXPECT_FALSE(RunsOn(code, 10, 0));
  EXPECT_TRUE(RunsOn({{9, 0, true}}, 10, 0));
  EXPECT_EQ(ToString({{7, 5, false}, {9, 0, true}}), "7.5 and PTX 9.0");
}

TEST(ReadCudaLibrary, TellsWhatALibraryHolds) {
  const auto facts = ReadCudaLibraryFile(FAKES "/cuda/libonnxruntime_providers_cuda.so");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->cuda_major, 13);
  EXPECT_EQ(facts->code, (std::vector<CudaCode>{{9, 0, false}}));
  EXPECT_EQ(ReadCudaLibraryFile(FAKES "/cuda/libcudnn.so.9")->code.size(), 0u);
  EXPECT_EQ(ReadCudaLibrary({}).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weir::infer
