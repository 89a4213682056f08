#include "oip/model_facts.h"

#include <gtest/gtest.h>

namespace weir::oip {
namespace {

Json Parsed(std::string_view text) { return *ParseJson(text); }

TEST(ModelFacts, ReadsMetadata) {
  const auto info = ReadMetadata(Parsed(R"({"name":"m","versions":["1","2"],"platform":"onnxruntime_onnx",
    "inputs":[{"name":"x","datatype":"FP32","shape":[-1,3,4]}],
    "outputs":[{"name":"y","datatype":"BYTES","shape":[]}]})"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->versions, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(info->inputs, (std::vector<infer::TensorInfo>{{"x", infer::DType::kFp32, {-1, 3, 4}}}));
  EXPECT_EQ(info->outputs, (std::vector<infer::TensorInfo>{{"y", infer::DType::kBytes, {}}}));
}

TEST(ModelFacts, MetadataThatMakesNoSenseIsAnError) {
  for (const char* text :
       {"3", "{}", R"({"name":3})", R"({"name":"m","inputs":[3]})", R"({"name":"m","inputs":[{"name":"x"}]})",
        R"({"name":"m","inputs":[{"name":"x","datatype":"FP31","shape":[]}]})",
        R"({"name":"m","inputs":[{"name":"x","datatype":"FP32","shape":["a"]}]})"}) {
    EXPECT_FALSE(ReadMetadata(Parsed(text))) << text;
  }
}

TEST(ModelFacts, ReadsTheConfigurationAsJson) {
  infer::ModelInfo info;
  ASSERT_TRUE(AddConfiguration(
      Parsed(R"({"max_batch_size":8,"parameters":{"recipe":{"string_value":"layout: NHWC"},"n":{"x":1}}})"),
      info));
  EXPECT_EQ(info.max_batch, 8);
  EXPECT_EQ(info.parameters, (std::map<std::string, std::string>{{"recipe", "layout: NHWC"}}));
  EXPECT_FALSE(AddConfiguration(Parsed("[]"), info));
  EXPECT_FALSE(AddConfiguration(Parsed(R"({"max_batch_size":-1})"), info));
}

TEST(ModelFacts, ReadsTheConfigurationAsAMessage) {
  infer::ModelInfo info;
  // name: "m"; max_batch_size: 8; parameters {key: "recipe" value {string_value: "r"}}
  const std::string message(
      "\x0a\x01m\x20\x08"
      "\x72\x0d\x0a\x06recipe\x12\x03\x0a\x01r");
  ASSERT_TRUE(AddConfigurationMessage(message, info));
  EXPECT_EQ(info.max_batch, 8);
  EXPECT_EQ(info.parameters, (std::map<std::string, std::string>{{"recipe", "r"}}));
  EXPECT_FALSE(AddConfigurationMessage("\x72\x0d\x0a", info));
}

TEST(AddConfiguration, CountsInstancesAndSaysWhetherRequestsAreJoined) {
  infer::ModelInfo info;
  ASSERT_TRUE(AddConfiguration(
      Parsed(R"({"instance_group":[{"count":2,"gpus":[0,1],"kind":"KIND_GPU"},{"kind":"KIND_GPU"}],)"
             R"("dynamic_batching":{}})"),
      info));
  EXPECT_EQ(ReadNumber(info.parameters, kInstances), 5);
  EXPECT_EQ(ReadNumber(info.parameters, kThreads), 0);
  EXPECT_TRUE(info.parameters.contains(kJoinsRequests));
  infer::ModelInfo own;
  ASSERT_TRUE(AddConfiguration(Parsed(R"({"instance_group":[{"count":2,"kind":"KIND_CPU"}],)"
                                      R"("parameters":{"threads_in_force":{"string_value":"4"}}})"),
                               own));
  EXPECT_EQ(ReadNumber(own.parameters, kInstances), 2);
  EXPECT_EQ(ReadNumber(own.parameters, kThreads), 4);
  EXPECT_FALSE(own.parameters.contains(kJoinsRequests));
}

TEST(AddConfigurationMessage, CountsInstancesToo) {
  // instance_group {count: 2 kind: KIND_GPU gpus: [0, 200]}, packed; dynamic_batching {}
  infer::ModelInfo info;
  ASSERT_TRUE(
      AddConfigurationMessage(std::string("\x3a\x09\x10\x02\x1a\x03\x00\xc8\x01\x20\x01\x5a\x00", 13), info));
  EXPECT_EQ(ReadNumber(info.parameters, kInstances), 4);
  EXPECT_EQ(ReadNumber(info.parameters, kThreads), 0);
  EXPECT_TRUE(info.parameters.contains(kJoinsRequests));
}

TEST(ModelFacts, ReadsThePrioritiesOfDynamicBatching) {
  const auto of_json = [](std::string_view text) {
    infer::ModelInfo info;
    const Status read = AddConfiguration(Parsed(text), info);
    return read ? info.priority_levels : std::nullopt;
  };
  EXPECT_EQ(of_json(R"({"dynamic_batching":{"priority_levels":3}})"), 3);
  EXPECT_EQ(of_json(R"({"dynamic_batching":{"priority_levels":"3"}})"), 3) << "as protobuf writes uint64";
  EXPECT_EQ(of_json(R"({"dynamic_batching":{}})"), 0);
  EXPECT_EQ(of_json("{}"), 0);
  EXPECT_EQ(of_json(R"({"dynamic_batching":{"priority_levels":-1}})"), std::nullopt) << "refused";
  EXPECT_EQ(of_json(R"({"dynamic_batching":{"priority_levels":"3 "}})"), std::nullopt) << "refused";
  infer::ModelInfo info;
  EXPECT_EQ(info.priority_levels, std::nullopt) << "a server may show no configuration";
  // dynamic_batching {priority_levels: 2}
  ASSERT_TRUE(AddConfigurationMessage("\x5a\x02\x20\x02", info));
  EXPECT_EQ(info.priority_levels, 2);
  ASSERT_TRUE(AddConfigurationMessage("\x20\x08", info));
  EXPECT_EQ(info.priority_levels, 0);
}

TEST(ModelFacts, AddsUpTheStatisticsOfAllVersions) {
  const auto sum = ReadStatistics(Parsed(R"({"model_stats":[
    {"inference_count":3,"execution_count":2,"inference_stats":{"queue":{"count":2,"ns":10}}},
    {"inference_count":4,"execution_count":4,"inference_stats":{"queue":{"count":4,"ns":5}}}]})"));
  ASSERT_TRUE(sum) << sum.error().message;
  EXPECT_EQ(sum->rows, 7U);
  EXPECT_EQ(sum->batches, 6U);
  EXPECT_EQ(sum->queue.count, 6U);
  EXPECT_EQ(sum->queue.total, 15ns);
  EXPECT_FALSE(ReadStatistics(Parsed("{}")));
  EXPECT_FALSE(ReadStatistics(Parsed(R"({"model_stats":[{}]})")));
}

TEST(ModelFacts, ListsTheExtensionsThatAreNames) {
  EXPECT_EQ(ReadExtensions(Parsed(R"({"name":"weir","extensions":["a",3,"b"]})")),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(ReadExtensions(Parsed(R"({"name":"x"})")).empty());
  EXPECT_TRUE(ReadExtensions(Parsed("[]")).empty());
}

TEST(ModelFacts, ListsReadyModelsOnce) {
  const auto names = ReadReadyModels(Parsed(R"([{"name":"a","version":"1","state":"READY"},
    {"name":"a","version":"2","state":"READY"},{"name":"b","state":"UNAVAILABLE"},{"name":"c"}])"));
  EXPECT_EQ(*names, (std::vector<std::string>{"a", "c"}));
  EXPECT_FALSE(ReadReadyModels(Parsed("{}")));
  EXPECT_FALSE(ReadReadyModels(Parsed("[3]")));
}

TEST(ModelFacts, AddsLabelsToTheBytesOfAConfiguration) {
  infer::ModelInfo info;
  const std::string config("\x20\x08", 2);  // max_batch_size: 8
  ASSERT_TRUE(AddConfigurationMessage(config + LabelsParameter("cat\ndog\n"), info).has_value());
  EXPECT_EQ(info.max_batch, 8);
  EXPECT_EQ(info.parameters.at("labels"), "cat\ndog\n");
  EXPECT_EQ(LabelsParameter(""), "");
}

}  // namespace
}  // namespace weir::oip
