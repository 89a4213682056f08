#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::model {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWhole = R"(
name: "resnet"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "input" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, -1 ] } ]
output { name: "logits" data_type: TYPE_FP16 dims: 10 label_filename: "labels.txt" }
version_policy: { specific: { versions: [ 3, 1 ] } }
instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_AUTO } ]
default_model_filename: "net.onnx"
parameters { key: "engine" value: { string_value: "emulated:base=1ms" } }
)";

Error ErrorOf(const std::string& text) {
  const Result<Config> config = ParseConfig(text);
  EXPECT_FALSE(config.has_value()) << text;
  return config ? Error{} : config.error();
}

TEST(Config, ReadsEverythingThatIsSupported) {
  const Result<Config> config = ParseConfig(kWhole);
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->name, "resnet");
  EXPECT_EQ(config->backend, "onnxruntime");
  EXPECT_EQ(config->max_batch, 8);
  EXPECT_EQ(config->inputs[0].info, (infer::TensorInfo{"input", infer::DType::kFp32, {-1, 3, 224, -1}}));
  EXPECT_EQ(config->inputs[0].format, dataset::Layout::kNchw);
  EXPECT_EQ(config->outputs[0].info, (infer::TensorInfo{"logits", infer::DType::kFp16, {-1, 10}}));
  EXPECT_EQ(config->outputs[0].label_filename, "labels.txt");
  EXPECT_EQ(std::get<SpecificVersions>(config->versions).versions, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(config->model_file, "net.onnx");
  EXPECT_EQ(config->parameters.at("engine"), "emulated:base=1ms");
  EXPECT_EQ(config->parameters.at("streams"), "3");
}

TEST(Config, AddsNoBatchDimensionWithoutAMaxBatchSize) {
  const Result<Config> config = ParseConfig(R"(input { name: "x" data_type: TYPE_INT64 dims: [ 1, 4 ] })");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->inputs[0].info.shape, (infer::Shape{1, 4}));
}

TEST(Config, TakesTextWithAByteOrderMarkAndNamesUtf16) {
  const Result<Config> config = ParseConfig("\xEF\xBB\xBFmax_batch_size: 3");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->max_batch, 3);
  const Result<Config> json = ParseConfigJson("\xEF\xBB\xBF{\"max_batch_size\": 3}");
  ASSERT_TRUE(json.has_value()) << json.error().message;
  EXPECT_EQ(json->max_batch, 3);
  EXPECT_THAT(ErrorOf(std::string("\xFF\xFEm\0", 4)).message, HasSubstr("UTF-16: save it as UTF-8"));
}

TEST(Config, TakesAnEmptyFileAsSayingNothing) {
  const Result<Config> config = ParseConfig("");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->max_batch, 0);
  EXPECT_EQ(config->model_file, "model.onnx");
}

TEST(Config, RefusesUnsupportedFieldsByNameAndLine) {
  const Error error =
      ErrorOf("name: \"m\"\nmax_batch_size: 8\nsequence_batching { max_sequence_idle_microseconds: 4 }\n");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message, "line 3: sequence_batching is not supported");
  EXPECT_EQ(ErrorOf("input {\n name: \"x\"\n is_shape_tensor: true\n}").message,
            "line 3: is_shape_tensor is not supported");
  EXPECT_EQ(ErrorOf("dynamic_batching {\n preserve_ordering: true }").message,
            "line 2: preserve_ordering is not supported");
}

TEST(Config, RefusesUnsupportedValuesByNameAndLine) {
  EXPECT_EQ(ErrorOf("\ninstance_group { kind: KIND_MODEL }").message, "line 2: KIND_MODEL is not supported");
  for (const char* text : {"backend: \"tensorrt\"", "platform: \"tensorflow_savedmodel\"",
                           "parameters { key: \"intra_op_thread_count\" value: { string_value: \"1\" } }"}) {
    EXPECT_EQ(ErrorOf(text).code, ErrorCode::kUnsupported) << text;
  }
  EXPECT_THAT(ErrorOf("name: \"m\"\nbackend: \"tensorrt\"").message,
              HasSubstr("line 2: backend \"tensorrt\""));
}

TEST(Config, ReadsInstancesOnGpus) {
  const auto on = [](const char* text) { return ParseConfig(text).value().parameters; };
  using Parameters = std::map<std::string, std::string>;
  EXPECT_EQ(on("instance_group { kind: KIND_GPU gpus: [0, 1] count: 2 }"),
            (Parameters{{"device", "cuda:0,cuda:1"}, {"streams", "2"}}));
  EXPECT_EQ(on("instance_group { kind: KIND_GPU }"), (Parameters{{"device", "cuda:all"}, {"streams", "1"}}));
  EXPECT_EQ(on("instance_group [ { kind: KIND_GPU gpus: 0 }, { kind: KIND_GPU gpus: 2 } ]"),
            (Parameters{{"device", "cuda:0,cuda:2"}, {"streams", "1"}}));
  EXPECT_EQ(on("parameters { key: \"device\" value { string_value: \"gpu:1\" } }"),
            (Parameters{{"device", "gpu:1"}}));
  for (const char* text :
       {"instance_group [ { kind: KIND_GPU gpus: 0 count: 2 }, { kind: KIND_GPU gpus: 1 } ]",
        "instance_group [ { kind: KIND_GPU gpus: 0 }, { kind: KIND_CPU } ]", "instance_group { gpus: 0 }",
        "instance_group { kind: KIND_GPU gpus: [0, 0] }", "instance_group { kind: KIND_GPU gpus: -1 }",
        "parameters { key: \"device\" value { string_value: \"tpu\" } }",
        "parameters { key: \"preprocess\" value { string_value: \"yes\" } }",
        "parameters { key: \"cuda_graph\" value { string_value: \"true\" } }"})
    EXPECT_FALSE(ParseConfig(text)) << text;
}

TEST(Config, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"name: ",
        "max_batch_size: -1",
        "input { data_type: TYPE_FP32 dims: 1 }",
        "input { name: \"x\" dims: 1 }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: 0 }",
        "output { name: \"x\" data_type: TYPE_FP32 dims: -2 }",
        "version_policy { specific { versions: 0 } }",
        "version_policy { specific { } }",
        "version_policy { latest { num_versions: 0 } }",
        "version_policy { latest { } }",
        "default_model_filename: \"../model.onnx\"",
        "parameters { key: \"threads\" value: { string_value: \"many\" } }",
        "parameters { key: \"cpus\" value: { string_value: \"3-1\" } }",
        "max_batch_size: 0 dynamic_batching { }",
        "max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }",
        "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
        "dynamic_batching { priority_levels: 2 }",
        "dynamic_batching { default_priority_level: 1 }",
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 "
        "value { } } }",
        "model_warmup { name: \"w\" batch_size: 1 }",
        "model_warmup { batch_size: 1 inputs { key: \"x\" value { data_type: TYPE_FP32 dims: 1 } } }",
        "model_warmup { batch_size: 1 inputs { key: \"x\" value { data_type: TYPE_FP32 dims: -1 zero_data: "
        "true } } }",
        "max_batch_size: 2 model_warmup { batch_size: 3 inputs { key: \"x\" value { data_type: TYPE_FP32 "
        "dims: 1 "
        "zero_data: true } } }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2 ] } }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 2 ] reshape { shape: [ 2, -1 ] } }",
        "instance_group { count: -1 }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: 1 } input { name: \"x\" data_type: TYPE_FP32 dims: 1 "
        "}"}) {
    EXPECT_EQ(ErrorOf(text).code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Config, ReadsHowCallsWait) {
  const Result<Config> config = ParseConfig(R"(
max_batch_size: 8
dynamic_batching {
  preferred_batch_size: [ 8, 4 ]
  max_queue_delay_microseconds: 500
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 9 max_queue_size: 16 }
  priority_queue_policy { key: 1 value { allow_timeout_override: true } }
})");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const DynamicBatching& batching = *config->dynamic_batching;
  EXPECT_EQ(batching.preferred_batch_sizes, (std::vector<int>{4, 8}));
  EXPECT_EQ(batching.max_queue_delay, std::chrono::microseconds(500));
  EXPECT_EQ(batching.priority_levels, 2);
  EXPECT_EQ(batching.default_priority_level, 2);
  EXPECT_EQ(batching.default_queue_policy->timeout_action, QueuePolicy::TimeoutAction::kDelay);
  EXPECT_EQ(batching.default_queue_policy->max_queue_size, 16);
  EXPECT_TRUE(batching.priority_queue_policy.at(1).allow_timeout_override);
}

TEST(Config, ReadsReshapesAndWarmUps) {
  const Result<Config> config = ParseConfig(R"(
max_batch_size: 2
input { name: "x" data_type: TYPE_FP32 dims: [ 1, -1 ] reshape { shape: [ -1 ] } }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }
model_warmup { name: "w" batch_size: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 1, 3 ] random_data: true } } }
)");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->inputs[0].info.shape, (infer::Shape{-1, 1, -1}));
  EXPECT_EQ(config->inputs[0].model_shape(), (infer::Shape{-1, -1}));
  EXPECT_EQ(config->outputs[0].model_shape(), (infer::Shape{-1}));
  EXPECT_EQ(config->warm_ups[0].count, 1);
  EXPECT_TRUE(config->warm_ups[0].inputs.at("x").random);
}

TEST(Config, NamesAnUnknownKeyOfJsonAndTheOneThatWasMeant) {
  const auto error = [](const char* json) { return ParseConfigJson(json).error(); };
  const Error typo = error(R"({"max_batch_sise": 4})");
  EXPECT_EQ(typo.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(typo.message, HasSubstr("max_batch_sise: no such key, did you mean max_batch_size?"));
  EXPECT_THAT(error(R"({"input": [{"name": "x", "dim": [1]}]})").message,
              HasSubstr("input.dim: no such key, did you mean dims?"));
  EXPECT_THAT(error(R"({"parameters": {"threads": {"string_valu": "2"}}})").message,
              HasSubstr("parameters.threads.string_valu: no such key, did you mean string_value?"));
  EXPECT_EQ(error(R"({"instance_group": [{"rate_limiter": {}}]})").code, ErrorCode::kUnsupported);
  EXPECT_THAT(error(R"({"instance_group": [{"rate_limiter": {}}]})").message,
              HasSubstr("instance_group.rate_limiter is not supported"));
  EXPECT_LT(error(("{\"" + std::string(1 << 20, 'x') + "\": 1}").c_str()).message.size(), 1000U);
  EXPECT_EQ(ParseConfigJson(R"({"maxBatchSize": 4})")->max_batch, 4);
}

TEST(Config, ReadsJsonAsItReadsText) {
  const Result<Config> config =
      ParseConfigJson(R"({"max_batch_size": 4, "parameters": {"threads": {"string_value": "2"}}})");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->max_batch, 4);
  EXPECT_EQ(config->parameters.at("threads"), "2");
  EXPECT_EQ(ParseConfigJson(R"({"ensemble_scheduling": {}})").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(ParseConfigJson("[").error().code, ErrorCode::kInvalidArgument);
}

TEST(Config, ReadsListsOfCpus) {
  EXPECT_EQ(*ParseCpus("0-2,7,1"), (std::vector<int>{0, 1, 2, 7}));
  for (const char* text : {"", ",", "1-", "-1", "a", "1,,2", "1 ", "99999"})
    EXPECT_FALSE(ParseCpus(text).has_value()) << text;
}

TEST(Config, NamesTheLineOfAFaultInTheText) {
  EXPECT_THAT(ErrorOf("name: \"m\"\n\ninput {\n").message, HasSubstr("line 4"));
}

}  // namespace
}  // namespace weir::model
