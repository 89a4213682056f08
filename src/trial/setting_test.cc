#include "trial/setting.h"

#include <gmock/gmock.h>

namespace weir::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Setting Read(const char* factors) {
  auto setting = ReadSetting(ParseJson(factors).value());
  EXPECT_TRUE(setting) << setting.error().message;
  return setting.value_or(Setting{});
}

TEST(ReadSetting, GivesWhatIsAbsentItsUsualLevel) {
  const Setting setting = Read("{}");
  EXPECT_EQ(setting.architecture, Architecture::kInProcess);
  EXPECT_EQ(setting.mode, Mode::kAsync);
  EXPECT_EQ(setting.batch, 8);
  EXPECT_FALSE(setting.in_flight || setting.images || setting.server || setting.server_batching);
  EXPECT_TRUE(std::holds_alternative<ApplicationLoad>(setting.load));
  EXPECT_FALSE(setting.network.gbit_per_s);
  EXPECT_FALSE(setting.page_cache);
}

TEST(ReadSetting, KnowsAWarmPageCacheFromOneThatNobodyAskedFor) {
  EXPECT_EQ(Read(R"({"page_cache": "warm"})").page_cache, PageCache::kWarm);
  EXPECT_EQ(Read(R"({"page_cache": "cold"})").page_cache, PageCache::kCold);
}

TEST(ReadSetting, PutsTheAcceleratorInTheEnginesPlace) {
  EXPECT_EQ(Read(R"({"engine": "openvino", "accelerator": "none"})").engine, "openvino");
  const Setting setting = Read(R"({"accelerator": "emulated:per_item=2ms"})");
  EXPECT_EQ(setting.engine, "emulated:per_item=2ms");
  EXPECT_TRUE(setting.is_emulated());
}

TEST(ReadSetting, TakesSharedMemoryAsAPayload) {
  const Setting setting = Read(R"({"payload": "shared-memory"})");
  EXPECT_TRUE(setting.shared_memory);
  EXPECT_EQ(setting.payload, Payload::kTensor);
  EXPECT_EQ(Read(R"({"payload": "image"})").payload, Payload::kImage);
}

TEST(ReadSetting, ReadsDevices) {
  EXPECT_EQ(Read("{}").device, "");
  EXPECT_EQ(Read(R"({"device": "cuda:1", "cuda_graph": "on", "preprocess": "gpu"})").device, "cuda:1");
  const Setting two = Read(R"({"gpus": 2, "cuda_graph": "on"})");
  EXPECT_EQ(two.device, "cuda:0,cuda:1");
  EXPECT_TRUE(two.cuda_graph);
  EXPECT_TRUE(two.is_accelerated());
}

TEST(ReadSetting, ReadsLevelsThatAreMaps) {
  const Setting setting =
      Read(R"({"architecture": "distributed", "load": {"rate_per_s": 50, "distribution": "poisson"},
      "network": {"variable": {"low_gbit_per_s": 1, "high_gbit_per_s": 3, "every_ms": 250}, "delay_us": 20},
      "server_batching": {"max_batch": 32, "delay_us": 500}, "placement": {"server": "0", "client": "1-3"},
      "server": {"name": "t", "command": ["a", "b"], "ready": "http://h:1/", "grpc": "grpc://h:2", "model": "m"}})");
  EXPECT_EQ(std::get<OpenLoad>(setting.load).distribution, "poisson");
  EXPECT_DOUBLE_EQ(setting.network.variable->high, 3);
  EXPECT_EQ(setting.network.variable->every, Duration(250ms));
  EXPECT_EQ(setting.network.delay, Duration(20us));
  EXPECT_EQ(setting.server_batching->max_batch, 32);
  EXPECT_THAT(setting.client_cpus, ElementsAre(1, 2, 3));
  EXPECT_THAT(setting.server->command, ElementsAre("a", "b"));
  EXPECT_EQ(setting.server->model, "m");
}

TEST(ReadSetting, RefusesWhatNoStudyCouldSay) {
  EXPECT_THAT(ReadSetting(ParseJson(R"({"mode": "both"})").value()).error().message, HasSubstr("mode both"));
  EXPECT_FALSE(ReadSetting(ParseJson(R"({"batch": "many"})").value()));
  EXPECT_FALSE(
      ReadSetting(ParseJson(R"({"load": {"rate_per_s": 50}})").value()));  // the file's reader fills it in
}

}  // namespace
}  // namespace weir::trial
