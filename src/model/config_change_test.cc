#include "model/config_change.h"

#include <gmock/gmock.h>

namespace weir::model {
namespace {

constexpr const char* kText = R"(name: "m" backend: "onnxruntime" max_batch_size: 8
  input { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }
  output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" }
  instance_group { count: 3 }
  dynamic_batching { max_queue_delay_microseconds: 100 preferred_batch_size: [ 4 ] }
  parameters { key: "precision" value: { string_value: "f32" } }
  parameters { key: "threads" value: { string_value: "2" } })";

Config Changed(const ConfigChange& change, const Config& from = ParseConfig(kText).value()) {
  const auto config = ParseConfig(ChangeConfig(from, change));
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(Config{});
}

TEST(ChangeConfig, LeavesTheRestAsItIs) {
  const Config config = Changed({});
  EXPECT_EQ(config.name, "m");
  EXPECT_EQ(config.max_batch, 8);
  EXPECT_EQ(config.inputs.at(0).info.shape, (infer::Shape{-1, 3}));
  EXPECT_EQ(config.outputs.at(0).label_filename, "labels.txt");
  EXPECT_EQ(config.parameters.at("streams"), "3");
  EXPECT_EQ(config.dynamic_batching->preferred_batch_sizes, std::vector<int>{4});
}

TEST(ChangeConfig, PutsParametersOverThoseThatAreThere) {
  const Config config =
      Changed({.parameters = {{"engine", "emulated:base=1ms"}, {"threads", ""}, {"precision", "bf16"}}});
  EXPECT_EQ(config.parameters.at("engine"), "emulated:base=1ms");
  EXPECT_EQ(config.parameters.at("precision"), "bf16");
  EXPECT_FALSE(config.parameters.contains("threads"));
  EXPECT_EQ(Changed({.parameters = {{"streams", "1"}}}).parameters.at("streams"), "1");
}

TEST(ChangeConfig, TurnsBatchingOnAndOff) {
  EXPECT_FALSE(Changed({.dynamic_batching = {{.on = false}}}).dynamic_batching);
  const Config config = Changed({.max_batch_size = 16, .dynamic_batching = {{.max_queue_delay_us = 500}}});
  EXPECT_EQ(config.max_batch, 16);
  EXPECT_EQ(config.dynamic_batching->max_queue_delay, std::chrono::microseconds(500));
  EXPECT_TRUE(config.dynamic_batching->preferred_batch_sizes.empty());
}

TEST(ChangeConfig, MakesOneOfNothing) {
  const Config config = Changed({.parameters = {{"engine", "openvino"}}}, Config{});
  EXPECT_EQ(config.parameters.at("engine"), "openvino");
}

}  // namespace
}  // namespace weir::model
