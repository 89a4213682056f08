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
  EXPECT_EQ(config->inputs[0].format, data::Layout::kNchw);
  EXPECT_EQ(config->outputs[0].info, (infer::TensorInfo{"logits", infer::DType::kFp16, {-1, 10}}));
  EXPECT_EQ(config->outputs[0].label_filename, "labels.txt");
  EXPECT_EQ(config->versions, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(config->model_file, "net.onnx");
  EXPECT_EQ(config->parameters.at("engine"), "emulated:base=1ms");
  EXPECT_EQ(config->parameters.at("streams"), "3");
}

TEST(Config, AddsNoBatchDimensionWithoutAMaxBatchSize) {
  const Result<Config> config = ParseConfig(R"(input { name: "x" data_type: TYPE_INT64 dims: [ 1, 4 ] })");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->inputs[0].info.shape, (infer::Shape{1, 4}));
}

TEST(Config, TakesAnEmptyFileAsSayingNothing) {
  const Result<Config> config = ParseConfig("");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->max_batch, 0);
  EXPECT_EQ(config->model_file, "model.onnx");
}

TEST(Config, RefusesUnsupportedFieldsByNameAndLine) {
  const Error error =
      ErrorOf("name: \"m\"\nmax_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 4 ] }\n");
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(error.message, "line 3: dynamic_batching is not supported");
  EXPECT_EQ(ErrorOf("input {\n name: \"x\"\n reshape { shape: [ 1 ] }\n}").message,
            "line 3: reshape is not supported");
}

TEST(Config, RefusesUnsupportedValuesByNameAndLine) {
  EXPECT_EQ(ErrorOf("\ninstance_group { kind: KIND_GPU }").message, "line 2: KIND_GPU is not supported");
  for (const char* text : {"backend: \"tensorrt\"", "platform: \"tensorflow_savedmodel\"",
                           "parameters { key: \"intra_op_thread_count\" value: { string_value: \"1\" } }"}) {
    EXPECT_EQ(ErrorOf(text).code, ErrorCode::kUnsupported) << text;
  }
  EXPECT_THAT(ErrorOf("backend: \"tensorrt\"").message, HasSubstr("tensorrt"));
}

TEST(Config, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"name: ", "max_batch_size: -1", "input { data_type: TYPE_FP32 dims: 1 }",
        "input { name: \"x\" dims: 1 }", "input { name: \"x\" data_type: TYPE_FP32 }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: 0 }",
        "output { name: \"x\" data_type: TYPE_FP32 dims: -2 }", "version_policy { specific { versions: 0 } }",
        "version_policy { specific { } }", "default_model_filename: \"../model.onnx\"",
        "parameters { key: \"threads\" value: { string_value: \"many\" } }", "instance_group { count: -1 }",
        "input { name: \"x\" data_type: TYPE_FP32 dims: 1 } input { name: \"x\" data_type: TYPE_FP32 dims: 1 "
        "}"}) {
    EXPECT_EQ(ErrorOf(text).code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Config, NamesTheLineOfAFaultInTheText) {
  EXPECT_THAT(ErrorOf("name: \"m\"\n\ninput {\n").message, HasSubstr("line 4"));
}

}  // namespace
}  // namespace weir::model
