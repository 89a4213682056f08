#include "infer/device.h"

#include <gmock/gmock.h>

namespace weir::infer {
namespace {

using ::testing::HasSubstr;

std::string Again(std::string_view text) {
  const auto devices = ParseDevices(text);
  return devices ? ToString(*devices) : "error: " + devices.error().message;
}

TEST(ParseDevices, ReadsWhatPeopleWrite) {
  for (const char* text : {"cpu", "cuda:0", "cuda:7", "cuda:all", "gpu:1", "npu", "cuda:0,cuda:1",
                           "cuda:GPU-8f6d7c1e-0000-1111-2222-333344445555", "cuda:MIG-8f6d7c1e/7/0"})
    EXPECT_EQ(Again(text), text);
  EXPECT_EQ(Again("cuda"), "cuda:0");
  EXPECT_EQ(Again("gpu"), "gpu:0");
  EXPECT_EQ(Again("cuda:0,1,3"), "cuda:0,cuda:1,cuda:3");
}

TEST(ParseDevices, NamesWhatIsNoDevice) {
  for (const char* text :
       {"", "cuda:", "cuda:-1", "cuda:1x", "cuda:64", "tpu", "gpu:all", "gpu:GPU-1", "npu:0", "cpu:0",
        "CUDA:0", "cuda:GPU-", "cuda:GPU-a b", "cuda:0,", ",cuda:0", "npu,0"}) {
    const auto devices = ParseDevices(text);
    ASSERT_FALSE(devices) << text;
    EXPECT_EQ(devices.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(devices.error().message, HasSubstr("cuda:N")) << text;
  }
}

TEST(ParseDevices, TakesOneKindAndEachDeviceOnce) {
  EXPECT_THAT(Again("cuda:0,cpu"), HasSubstr("two kinds"));
  EXPECT_THAT(Again("cuda:0,0"), HasSubstr("cuda:0 is named twice"));
  EXPECT_THAT(Again("cuda:all,1"), HasSubstr("every GPU"));
}

TEST(IsAccelerator, IsAnythingButTheCpu) {
  EXPECT_FALSE(IsAccelerator({}));
  EXPECT_FALSE(IsAccelerator({Device{}}));
  EXPECT_TRUE(IsAccelerator(*ParseDevices("npu")));
  EXPECT_EQ(ToString(std::vector<Device>{}), "cpu");
}

}  // namespace
}  // namespace weir::infer
