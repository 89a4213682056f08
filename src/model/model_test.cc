#include "model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "infer/testing/tiny_onnx.h"
#include "model/effective_config.h"
#include "model/show.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;
using infer::testing::SaveTinyOnnx;
using infer::testing::TinyOnnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe = "layout: NCHW\ndatatype: FP32\nresize: {width: 4, height: 4}\n";

class ModelFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(::testing::TempDir()) / ("model-" + std::to_string(getpid()));
    fs::remove_all(base_);
    fs::create_directories(base_ / "net/1");
    base_ = fs::canonical(base_);
  }
  void TearDown() override { fs::remove_all(base_); }

  std::string Path(const std::string& name) const { return (base_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(base_ / name, std::ios::binary) << text;
  }
  void Save(const std::string& name,
            const TinyOnnx& tiny = {.input_shape = {-1, 3, 4, 4}, .output_shape = {-1, 3, 4, 4}}) const {
    SaveTinyOnnx(base_.string() + "/", name, tiny);
  }
  Model Open(const std::string& name, const OpenOptions& options = {}) const {
    const Result<Model> model = OpenModel(Path(name), options);
    EXPECT_TRUE(model.has_value()) << model.error().message;
    return model.value_or(Model{});
  }
  Error Refusal(const std::string& name, const OpenOptions& options = {}) const {
    const Result<Model> model = OpenModel(Path(name), options);
    EXPECT_FALSE(model.has_value());
    return model ? Error{} : model.error();
  }

  fs::path base_;
};

TEST_F(ModelFolder, OpensABareFileWithTheRecipeBesideIt) {
  Save("net.onnx");
  EXPECT_FALSE(Open("net.onnx").recipe.has_value());
  Write("net.recipe.yaml", std::string(kRecipe) + "labels: classes.txt\n");
  Write("classes.txt", "cat\ndog\n");
  const Model model = Open("net.onnx");
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.path, Path("net.onnx"));
  EXPECT_TRUE(model.recipe.has_value());
  EXPECT_THAT(model.labels, ElementsAre("cat", "dog"));
  EXPECT_TRUE(model.not_batchable.empty());
  EXPECT_FALSE(model.fixed_batch.has_value());
}

TEST_F(ModelFolder, OpensTheNewestVersionOfAFolder) {
  fs::create_directories(base_ / "net/2");
  fs::create_directories(base_ / "net/10");
  fs::create_directories(base_ / "net/011");
  Save("net/2/model.onnx");
  Save("net/10/model.onnx");
  const Model model = Open("net");
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.version, "10");
  EXPECT_EQ(model.path, Path("net/10/model.onnx"));
  Write("net/config.pbtxt", "version_policy { specific { versions: [ 2 ] } }");
  EXPECT_EQ(Open("net/").version, "2");
}

TEST_F(ModelFolder, ServesTheVersionsThatItsPolicyWants) {
  const auto served = [&](const std::string& policy) {
    Write("net/config.pbtxt", policy);
    return ServedVersions(Path("net"), {}).value_or(std::vector<std::string>{});
  };
  fs::create_directories(base_ / "net/2");
  fs::create_directories(base_ / "net/10");
  EXPECT_THAT(served(""), ElementsAre("10"));
  EXPECT_THAT(served("version_policy { latest { num_versions: 2 } }"), ElementsAre("2", "10"));
  EXPECT_THAT(served("version_policy { all { } }"), ElementsAre("1", "2", "10"));
  EXPECT_THAT(served("version_policy { specific { versions: [ 7, 2 ] } }"), ElementsAre("2", "7"));
  Save("net/2/model.onnx");
  EXPECT_EQ(Open("net", {.version = "2"}).version, "2");
  EXPECT_THAT(Refusal("net", {.version = "7"}).message, HasSubstr("net/7/model.onnx"));
  EXPECT_THAT(Refusal("net", {.version = "../net/2"}).message, HasSubstr("no such file"));
}

TEST_F(ModelFolder, TellsOfALinkToWhatIsNotThere) {
  Save("net/1/model.onnx");
  fs::create_directory_symlink(base_ / "net/gone", base_ / "net/2");
  EXPECT_THAT(Refusal("net").message, HasSubstr("net/2 is a link to"));
  EXPECT_EQ(Open("net", {.version = "1"}).version, "1");
}

TEST_F(ModelFolder, MakesUpTheBatchThatNobodySaid) {
  Save("net/1/model.onnx");
  EXPECT_EQ(Open("net").serving_max_batch, kDefaultMaxBatch);
  Write("net/config.pbtxt", "max_batch_size: 0");
  EXPECT_EQ(Open("net").serving_max_batch, 0);
  Write("net/config.pbtxt", "max_batch_size: 3");
  EXPECT_EQ(Open("net").serving_max_batch, 3);
  Save("flat.onnx", {.input_shape = {-1}, .output_shape = {-1}});
  EXPECT_EQ(Open("flat.onnx").serving_max_batch, 0);
  Save("fixed.onnx", {.input_shape = {4, 4}, .output_shape = {4, 4}});
  EXPECT_EQ(Open("fixed.onnx").serving_max_batch, 0);
}

TEST_F(ModelFolder, ShowsClientsTheShapesBeforeTheReshape) {
  Save("net/1/model.onnx");
  Write("net/config.pbtxt",
        "max_batch_size: 2 input { name: \"x\" data_type: TYPE_FP32 dims: [ 48 ] reshape { shape: [ 3, 4, 4 "
        "] } }");
  const Model model = Open("net");
  EXPECT_EQ(model.inputs[0].shape, (infer::Shape{-1, 3, 4, 4}));
  EXPECT_EQ(model.client_inputs[0].shape, (infer::Shape{-1, 48}));
}

TEST_F(ModelFolder, TellsTheConfigurationInForce) {
  Save("net/1/model.onnx");
  Write("net/config.pbtxt",
        "max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 7 }\n"
        "input { name: \"x\" data_type: TYPE_FP32 dims: [ 48 ] reshape { shape: [ 3, 4, 4 ] } }");
  const Model model = Open("net");
  const auto config = MakeEffectiveConfig(model, {.name = "net",
                                                  .inputs = model.client_inputs,
                                                  .outputs = model.client_outputs,
                                                  .max_batch = model.serving_max_batch,
                                                  .engine = "onnxruntime",
                                                  .parameters = {{"recipe", "scale: 1\n"}}});
  ASSERT_TRUE(config.has_value());
  const Json& json = config->json;
  EXPECT_EQ(json["max_batch_size"], 2);
  EXPECT_EQ(json["platform"], "onnxruntime_onnx");
  EXPECT_EQ(json["input"][0]["dims"], Json({48}));
  EXPECT_EQ(json["input"][0]["reshape"]["shape"], Json({3, 4, 4}));
  EXPECT_EQ(json["output"][0]["dims"], Json({3, 4, 4}));
  EXPECT_EQ(json["dynamic_batching"]["max_queue_delay_microseconds"], 7);
  EXPECT_EQ(json["version_policy"]["latest"]["num_versions"], 1);
  EXPECT_EQ(json["parameters"]["recipe"]["string_value"], "scale: 1\n");
  EXPECT_EQ(json["instance_group"][0]["count"], 1);
}

TEST_F(ModelFolder, IsConfiguredByJsonWhereThatIsGiven) {
  Save("net/1/model.onnx");
  Write("net/config.pbtxt", "max_batch_size: 2");
  EXPECT_EQ(Open("net", {.config = R"({"max_batch_size": 5})"}).serving_max_batch, 5);
  EXPECT_THAT(Refusal("net", {.config = R"({"name": "../other"})"}).message, HasSubstr("../other"));
}

TEST_F(ModelFolder, NamesTheIndicesOfItsScores) {
  Save("net.onnx");
  Write("net.recipe.yaml", std::string(kRecipe) + "labels: classes.txt\nfirst_class: 1\n");
  Write("classes.txt", "cat\ndog\n");
  EXPECT_THAT(Open("net.onnx").output_labels.at("y"), ElementsAre("", "cat", "dog"));
}

TEST_F(ModelFolder, ReadsWarmUpFilesOfItsOwn) {
  Save("net/1/model.onnx");
  fs::create_directories(base_ / "net/warmup");
  Write("net/warmup/x", "data");
  const Model model = Open("net");
  EXPECT_EQ(ReadWarmUpFile(model, "x", 100)->text(), "data");
  EXPECT_EQ(ReadWarmUpFile(model, "y", 100).error().code, ErrorCode::kNotFound);
  Write("secret.txt", "password\n");
  EXPECT_THAT(ReadWarmUpFile(model, "../../secret.txt", 100).error().message, HasSubstr("outside"));
}

TEST_F(ModelFolder, TakesBatchParametersAndLabelsFromTheConfiguration) {
  Save("net/1/model.onnx");
  Write("net/config.pbtxt",
        "name: \"net\" backend: \"openvino\" max_batch_size: 16\n"
        "output { name: \"y\" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] label_filename: \"named.txt\" }\n"
        "parameters { key: \"threads\" value: { string_value: \"2\" } }");
  Write("net/named.txt", "one\n");
  Write("net/labels.txt", "other\n");
  const Model model = Open("net");
  EXPECT_EQ(model.backend, "openvino");
  EXPECT_EQ(model.max_batch, 16);
  EXPECT_THAT(model.labels, ElementsAre("one"));
  EXPECT_EQ(SessionDefaults(model).threads, 2);
}

TEST_F(ModelFolder, FallsBackToLabelsOfTheFolder) {
  Save("net/1/model.onnx");
  Write("net/labels.txt", "cat\n");
  EXPECT_THAT(Open("net").labels, ElementsAre("cat"));
}

TEST_F(ModelFolder, PrefersTheRecipeThatTheUserNames) {
  Save("net/1/model.onnx");
  Write("net/recipe.yaml", kRecipe);
  Write("mine.yaml", std::string(kRecipe) + "scale: 0.5\n");
  EXPECT_EQ(Open("net").recipe->scale, 1);
  EXPECT_EQ(Open("net", {.recipe = Path("mine.yaml")}).recipe->scale, 0.5);
}

TEST_F(ModelFolder, SaysWhatBatchAModelIsFixedTo) {
  Save("net.onnx", {.input_shape = {4, 4}, .output_shape = {4, 4}});
  const Model model = Open("net.onnx");
  EXPECT_EQ(model.fixed_batch, 4);
  EXPECT_THAT(model.not_batchable, HasSubstr("fixed first dimension of 4"));
}

TEST_F(ModelFolder, OpensAnEmulatedModelWithoutAFile) {
  Write("net/config.pbtxt",
        "backend: \"emulated\" max_batch_size: 8\n"
        "input { name: \"x\" data_type: TYPE_UINT8 dims: [ 2 ] } output { name: \"y\" data_type: TYPE_FP32 "
        "dims: [ 5 ] }\n"
        "parameters { key: \"engine\" value: { string_value: \"emulated:base=0ms\" } }");
  const Model model = Open("net");
  EXPECT_TRUE(model.path.empty());
  EXPECT_EQ(model.inputs[0].shape, (infer::Shape{-1, 2}));
  const SteadyClock clock;
  const auto opened = OpenSession(model, "", {}, clock);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->engine->name(), "emulated");
  EXPECT_EQ(opened->session->outputs()[0].name, "y");
  const auto wrong = OpenSession(model, "onnxruntime", {}, clock);
  ASSERT_FALSE(wrong.has_value());
}

TEST_F(ModelFolder, GivesAnEmulatedEngineTheTensorsOfTheFile) {
  Save("net.onnx");
  const SteadyClock clock;
  const auto opened = OpenSession(Open("net.onnx"), "emulated:base=0ms", {}, clock);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_EQ(opened->session->inputs()[0].shape, (infer::Shape{-1, 3, 4, 4}));
}

TEST_F(ModelFolder, NamesTheModelWhoseEngineDoesNotOpen) {
  Save("net.onnx");
  const SteadyClock clock;
  const auto opened = OpenSession(Open("net.onnx"), "warp", {}, clock);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().message, HasSubstr("model net: "));
  EXPECT_THAT(opened.error().message, HasSubstr("warp"));
}

TEST_F(ModelFolder, SaysWhatIsMissing) {
  EXPECT_EQ(Refusal("gone.onnx").code, ErrorCode::kNotFound);
  const Error empty = Refusal("net");
  EXPECT_EQ(empty.code, ErrorCode::kNotFound);
  EXPECT_THAT(empty.message, HasSubstr("net/1/model.onnx"));
}

TEST_F(ModelFolder, RefusesUrlsForNow) {
  const auto model = OpenModel("http://localhost:8000/resnet50", {});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
}

TEST_F(ModelFolder, RefusesAConfigurationOfAnotherNameOrShape) {
  Save("net/1/model.onnx");
  Write("net/config.pbtxt", "name: \"other\"");
  EXPECT_THAT(Refusal("net").message, HasSubstr("\"other\""));
  Write("net/config.pbtxt", "input { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 3, 8, 8 ] }");
  EXPECT_THAT(Refusal("net").message, HasSubstr("config.pbtxt: input \"x\" is [-1,3,8,8] there"));
  Write("net/config.pbtxt", "\nsequence_batching { }");
  EXPECT_THAT(Refusal("net").message, HasSubstr("config.pbtxt: line 2: sequence_batching is not supported"));
}

TEST_F(ModelFolder, RefusesARecipeThatDoesNotFit) {
  Save("net/1/model.onnx");
  Write("net/recipe.yaml", "layout: NHWC\ndatatype: UINT8\nresize: {width: 4, height: 4}\n");
  const Error error = Refusal("net");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("recipe.yaml: makes UINT8"));
  Write("net/recipe.yaml", kRecipe);
  Write("net/config.pbtxt",
        "input { name: \"x\" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ -1, 3, 4, 4 ] }");
  EXPECT_THAT(Refusal("net").message, HasSubstr("format"));
}

TEST_F(ModelFolder, RefusesPartsThatLieOutside) {
  Save("elsewhere.onnx");
  Write("secret.txt", "password\n");
  fs::create_symlink(base_ / "elsewhere.onnx", base_ / "net/1/model.onnx");
  EXPECT_THAT(Refusal("net").message, HasSubstr("outside the model's folder"));
  fs::remove(base_ / "net/1/model.onnx");
  Save("net/1/model.onnx");

  fs::create_symlink(base_ / "secret.txt", base_ / "net/labels.txt");
  EXPECT_THAT(Refusal("net").message, HasSubstr("labels.txt"));
  fs::remove(base_ / "net/labels.txt");

  Write("net/recipe.yaml", std::string(kRecipe) + "labels: ../secret.txt\n");
  EXPECT_THAT(Refusal("net").message, HasSubstr("outside the model's folder"));
  Write("net/recipe.yaml", kRecipe);
  Write(
      "net/config.pbtxt",
      "output { name: \"y\" data_type: TYPE_FP32 dims: [ -1, 3, 4, 4 ] label_filename: \"../secret.txt\" }");
  EXPECT_THAT(Refusal("net").message, HasSubstr("outside the model's folder"));
}

// Whoever writes a configuration may not find out which files there are.
TEST_F(ModelFolder, SaysTheSameOfPartsOutsideThatAreThereAndThatAreNot) {
  Save("net/1/model.onnx");
  Write("secret.txt", "password\n");
  fs::create_directories(base_ / "net/warmup");
  fs::create_directory_symlink(base_, base_ / "net/warmup/up");
  fs::create_symlink(base_ / "secret.txt", base_ / "net/warmup/there");
  fs::create_symlink(base_ / "nothing.txt", base_ / "net/warmup/gone");
  const Model model = Open("net");
  const auto refusal = [&](const std::string& name) {
    const Error error = ReadWarmUpFile(model, name, 1000).error();
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << name;
    EXPECT_THAT(error.message, HasSubstr("outside the model's folder"));
    std::string message = error.message;
    const size_t at = message.find(name);
    EXPECT_NE(at, std::string::npos);
    return message.replace(at, name.size(), "NAME");
  };
  const std::string there = refusal("../../secret.txt");
  for (const std::string& name :
       {std::string("../../nothing.txt"), (base_ / "secret.txt").string(), (base_ / "nothing.txt").string(),
        std::string("there"), std::string("gone"), std::string("up/secret.txt"),
        std::string("up/nothing.txt"), std::string("../../no/such/folder")}) {
    if (name.starts_with("/")) {
      EXPECT_EQ(ReadWarmUpFile(model, name, 1000).error().code, ErrorCode::kNotFound) << name;
    } else {
      EXPECT_EQ(refusal(name), there) << name;
    }
  }
  EXPECT_EQ(ReadWarmUpFile(model, "nothing", 1000).error().code, ErrorCode::kNotFound);
}

TEST_F(ModelFolder, NamesTheLabelFileWhereItsLinesAreThoseOfTheScores) {
  Save("net/1/model.onnx");
  EXPECT_EQ(Open("net").label_file, "");
  Write("net/labels.txt", "cat\ndog\n");
  EXPECT_EQ(Open("net").label_file, "labels.txt");
  Write("net/recipe.yaml", std::string(kRecipe) + "first_class: 1\n");
  EXPECT_EQ(Open("net").label_file, "");
}

TEST_F(ModelFolder, TakesLinksThatStayInTheFolder) {
  fs::create_directories(base_ / "net/blobs");
  Save("net/blobs/a");
  fs::create_symlink("../blobs/a", base_ / "net/1/model.onnx");
  EXPECT_EQ(Open("net").path, Path("net/blobs/a"));
}

TEST_F(ModelFolder, IsDescribedByTheKeysOfTheContract) {
  Save("net/1/model.onnx");
  const auto facts = DescribeModel(Path("net"));
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  const Json json = facts->ToJson();
  for (const char* key : {"inputs", "outputs", "parameters", "multiply_adds_per_item", "activations_per_item",
                          "inner_modules", "depth", "batchable", "opset", "file_bytes"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["inputs"][0]["datatype"], "FP32");
  EXPECT_EQ(json["inputs"][0]["shape"], Json({-1, 3, 4, 4}));
  EXPECT_EQ(json["batchable"], true);
  EXPECT_EQ(json["opset"], 13);
}

}  // namespace
}  // namespace weir::model
