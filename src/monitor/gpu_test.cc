#include "monitor/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/testing/nvml_library.h"

namespace weir::monitor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FakeNvmlDevice Busy() {
  return {.name = "NVIDIA H200",
          .percent = 87,
          .memory_total = 150'754'820'096,
          .memory_reserved = 700'000'000,
          .memory_used = 4'000'000'000,
          .energy_mj = 5'000'123,
          .power_mw = 412'500,
          .clock_mhz = 1'980,
          .clock_reasons = nvml::kSwPowerCap};
}

TEST(GpuReader, TellsOfEachDevice) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  nvml.state().devices[0] = Busy();
  const auto reader = GpuReader::Open(nvml.path());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->driver(), "580.65.06");
  ASSERT_EQ((*reader)->devices().size(), 2u);
  EXPECT_EQ((*reader)->devices()[0].name, "NVIDIA H200");
  EXPECT_EQ((*reader)->devices()[0].memory_bytes, 150'754'820'096);
  const auto samples = (*reader)->Read();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].percent, 87);
  EXPECT_EQ(samples[0].memory_bytes, 4'000'000'000) << "without what the driver keeps";
  EXPECT_DOUBLE_EQ(*samples[0].energy_j, 5000.123);
  EXPECT_DOUBLE_EQ(*samples[0].power_watts, 412.5);
  EXPECT_EQ(samples[0].clock_mhz, 1980);
  EXPECT_THAT(ClockReasons(*samples[0].clock_reasons), ElementsAre("power_cap"));
  EXPECT_EQ(samples[1].percent, 0);
}

TEST(GpuReader, TellsTheStateOfTheCard) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 1;
  nvml.state().devices[0] = Busy();
  nvml.state().devices[0].pcie_width = 8;
  nvml.state().devices[0].neighbours = 2;
  nvml.state().devices[0].ecc_errors = 3;
  const auto reader = GpuReader::Open(nvml.path());
  ASSERT_TRUE(reader) << reader.error().message;
  const GpuDevice& card = (*reader)->devices()[0];
  EXPECT_EQ(card.uuid, "GPU-10000000-0000-0000-0000-000000000000");
  EXPECT_EQ(card.persistent, true);
  EXPECT_EQ(card.pcie_width, 8);
  EXPECT_EQ(card.pcie_most, 16);
  EXPECT_EQ(card.power_limit_w, 700);
  const GpuSample sample = (*reader)->Read().front();
  EXPECT_EQ(sample.neighbours, 2) << "this process is none";
  EXPECT_EQ(sample.ecc_errors, 3);
  EXPECT_FALSE(sample.xid);
  nvml.state().devices[0].xid = 79;
  EXPECT_EQ((*reader)->Read().front().xid, 79);
  EXPECT_EQ((*reader)->Read().front().xid, 79) << "it happened";
}

TEST(GpuReader, TellsActivitiesBetweenTwoReadings) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  nvml.state().devices[0] = {.graphics = 71.5, .tensor = 20};
  nvml.state().devices[1] = {.has_gpm = false};
  {
    const auto reader = GpuReader::Open(nvml.path());
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_FALSE((*reader)->Read().front().graphics_percent) << "there is no reading before";
    const auto samples = (*reader)->Read();
    EXPECT_EQ(samples[0].graphics_percent, 71.5);
    EXPECT_EQ(samples[0].tensor_percent, 20);
    EXPECT_FALSE(samples[0].jpeg_percent) << "the card does not tell it";
    EXPECT_FALSE(samples[1].graphics_percent) << "an older card";
  }
  EXPECT_EQ(nvml.state().gpm_samples, 0);
}

TEST(GpuReader, LetsTheLibraryGo) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 1;
  {
    const auto one = GpuReader::Open(nvml.path()), other = GpuReader::Open(nvml.path());
    EXPECT_EQ(nvml.state().open, 2);
  }
  EXPECT_EQ(nvml.state().open, 0);
  nvml.state().count = 0;
  EXPECT_FALSE(GpuReader::Open(nvml.path()));
  EXPECT_EQ(nvml.state().open, 0) << "also where there is nothing to read";
}

TEST(GpuReader, OfAnOldLibraryLacksWhatThatDoesNotTell) {
  NvmlLibrary nvml(FAKE_NVML_OLD);
  nvml.state().count = 1;
  nvml.state().devices[0] = Busy();
  const auto reader = GpuReader::Open(nvml.path());
  ASSERT_TRUE(reader) << reader.error().message;
  const GpuSample sample = (*reader)->Read().front();
  EXPECT_FALSE(sample.energy_j);
  EXPECT_DOUBLE_EQ(*sample.power_watts, 412.5);
  EXPECT_EQ(sample.memory_bytes, 4'700'000'000) << "it does not tell the driver's part apart";
  EXPECT_EQ(sample.clock_reasons, nvml::kSwPowerCap) << "by the name that the function had before version 12";
}

TEST(GpuReader, LacksWhatADividedDeviceOrOurRightsDoNotTell) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  nvml.state().devices[0] = {.name = "NVIDIA A100-SXM4-40GB", .mig = 1, .memory_used = 5, .clock_mhz = 1410};
  nvml.state().devices[1] = {.error = nvml::kNoPermission};
  const auto reader = GpuReader::Open(nvml.path());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->devices()[0].name, "NVIDIA A100-SXM4-40GB (MIG)");
  EXPECT_EQ((*reader)->devices()[1].name, "GPU 1");
  EXPECT_FALSE((*reader)->devices()[1].memory_bytes);
  const auto samples = (*reader)->Read();
  EXPECT_FALSE(samples[0].percent);
  EXPECT_EQ(samples[0].memory_bytes, 5);
  EXPECT_EQ(samples[0].clock_mhz, 1410);
  for (const bool told : {samples[1].percent.has_value(), samples[1].memory_bytes.has_value(),
                          samples[1].energy_j.has_value(), samples[1].power_watts.has_value(),
                          samples[1].clock_mhz.has_value(), samples[1].clock_reasons.has_value()}) {
    EXPECT_FALSE(told);
  }
}

TEST(GpuReader, OutlivesADeviceThatIsLost) {
  NvmlLibrary nvml(FAKE_NVML);
  nvml.state().count = 2;
  nvml.state().devices[0] = Busy();
  nvml.state().devices[1].handle_error = nvml::kGpuIsLost;
  const auto reader = GpuReader::Open(nvml.path());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->devices().size(), 1u) << "the other one";
  nvml.state().devices[0].error = nvml::kGpuIsLost;
  EXPECT_FALSE((*reader)->Read().front().percent);
}

TEST(GpuReader, SaysWhyThereIsNothingToRead) {
  const auto absent = GpuReader::Open("libno-such-library.so.1");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(absent.error().message, HasSubstr("libno-such-library.so.1"));

  const auto another = GpuReader::Open("libc.so.6");
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(another.error().message, HasSubstr("libc.so.6 has no nvmlInit_v2"));

  NvmlLibrary nvml(FAKE_NVML);
  const auto said = [&] { return GpuReader::Open(nvml.path()).error(); };
  EXPECT_EQ(said(), (Error{ErrorCode::kUnsupported, "NVML: it finds no device"}));
  nvml.state().count = 1;
  nvml.state().devices[0].handle_error = nvml::kNoPermission;
  EXPECT_EQ(said(), (Error{ErrorCode::kUnsupported, "NVML: device 0: Insufficient Permissions"}));
  nvml.state().count_error = 999;
  EXPECT_EQ(said(), (Error{ErrorCode::kUnsupported, "NVML: error 999"}));
  nvml.state().init_error = nvml::kDriverNotLoaded;
  EXPECT_EQ(said(), (Error{ErrorCode::kUnsupported, "NVML: Driver Not Loaded"}));
}

TEST(ClockReasons, NamesEachBitAndLeavesIdlenessOut) {
  EXPECT_THAT(ClockReasons(0), IsEmpty());
  EXPECT_THAT(ClockReasons(0x1), IsEmpty());
  EXPECT_THAT(ClockReasons(0x1ff),
              ElementsAre("application_clocks", "power_cap", "hardware_slowdown", "sync_boost",
                          "software_thermal", "hardware_thermal", "power_brake", "display_clocks"));
  EXPECT_THAT(ClockReasons(0x8000'0000'0000'0048),
              ElementsAre("hardware_slowdown", "hardware_thermal", "unknown_0x8000000000000000"));
}

}  // namespace
}  // namespace weir::monitor
