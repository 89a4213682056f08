#include "probe/storage_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::probe {
namespace {

using testing::HasSubstr;

StorageRequest Usual() {
  StorageRequest request;
  request.paths = {testing::TempDir()};
  return request;
}

std::string Refusal(const StorageRequest& request) {
  const Status status = CheckStorageRequest(request);
  return status ? "" : status.error().message;
}

TEST(StorageRequest, UsualOptionsGoTogether) { EXPECT_EQ(Refusal(Usual()), ""); }

TEST(StorageRequest, OptionsThatContradictAreNamed) {
  StorageRequest request = Usual();
  request.direct = true;
  request.access = Access::kMmap;
  EXPECT_THAT(Refusal(request), HasSubstr("a mapping has no O_DIRECT"));
  request = Usual();
  request.block_bytes = 5000;
  EXPECT_THAT(Refusal(request), HasSubstr("--block-bytes"));
  request = Usual();
  request.phase = StoragePhase::kMix;
  request.made.format = SetFormat::kTar;
  EXPECT_THAT(Refusal(request), HasSubstr("--phase mix reads whole files"));
  request = Usual();
  request.verify = request.from_memory = true;
  EXPECT_THAT(Refusal(request), HasSubstr("leave --source memory out"));
  request = Usual();
  request.phase = StoragePhase::kEtl;
  request.made.format = SetFormat::kRaw;
  EXPECT_THAT(Refusal(request), HasSubstr("pictures have sizes of their own"));
  request = Usual();
  request.engine = "openvino";
  EXPECT_THAT(Refusal(request), HasSubstr("--engine runs the model of --profile-from"));
}

TEST(StorageRequest, SeveralHostsReadFilesOfOneStorage) {
  StorageRequest request = Usual();
  EXPECT_TRUE(CheckHostsRequest(request).has_value());
  request.made.format = SetFormat::kTar;
  EXPECT_THAT(CheckHostsRequest(request).error().message, HasSubstr("--format goes with one host"));
}

TEST(StorageRequest, OptionsGoBeforeTheModelAndTheModelBeforeTheProfile) {
  StorageRequest request = Usual();
  EXPECT_EQ(DemandOf(request, {})->name, "own");
  request.profile = "resnet50-h100";
  const int batch = DemandOf(request, {})->batch;
  EXPECT_GT(batch, 1);
  const ModelStep model{.step = 7ms, .batch = 3};
  EXPECT_EQ(DemandOf(request, model)->batch, 3);
  request.batch = 5;
  request.step_ms = 0;
  EXPECT_EQ(DemandOf(request, model)->batch, 5);
  EXPECT_EQ(DemandOf(request, model)->step, Duration{});
}

TEST(StorageRequest, PhasesShareThreadsAndTimes) {
  StorageRequest request = Usual();
  request.accelerators = "2:8";
  request.threads = 3;
  request.limit_s = 1.5;
  request.from_memory = true;
  request.access = Access::kUring;
  const auto options = PhaseOptionsOf(request, {});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->train.least_accelerators, 2);
  EXPECT_EQ(options->train.most_accelerators, 8);
  EXPECT_EQ(options->train.read.access, Access::kMemory);
  EXPECT_EQ(options->infer.threads, 3);
  EXPECT_EQ(options->stream.limit, 1500ms);
  for (const char* wrong : {"0", "8:2", "1:", "5000"}) {
    request.accelerators = wrong;
    EXPECT_THAT(PhaseOptionsOf(request, {}).error().message, HasSubstr("--accelerators")) << wrong;
  }
}

TEST(StorageRequest, ASetHasSizesOfTheProfileAndPicturesWhereDecoded) {
  StorageRequest request = Usual();
  int drawn = 0;
  const auto draw = [&](Seed, int count) -> Result<std::vector<std::string>> {
    drawn = count;
    return std::vector<std::string>{"picture"};
  };
  EXPECT_EQ(MadeSetOf(request, {.sample_bytes = 1234}, draw)->mean_bytes, 1234);
  EXPECT_EQ(drawn, 0);
  request.made.mean_bytes = 77;
  request.decode = true;
  const auto made = MadeSetOf(request, {.sample_bytes = 1234}, draw);
  EXPECT_EQ(made->mean_bytes, 77);
  EXPECT_THAT(made->pictures, testing::ElementsAre("picture"));
  EXPECT_GT(drawn, 1);
}

}  // namespace
}  // namespace weir::probe
