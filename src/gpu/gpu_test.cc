#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include "gpu/normalise.h"
#include "gpu/objects.h"
#include "gpu/testing/cuda_library.h"

namespace weir::gpu {
namespace {

using ::testing::HasSubstr;

class Gpu : public ::testing::Test {
 protected:
  ContextPtr Retain(int ordinal = 0) {
    auto driver = Driver::Open(FAKE_CUDA);
    EXPECT_TRUE(driver) << driver.error().message;
    auto context = Context::Retain(*driver, ordinal);
    EXPECT_TRUE(context) << context.error().message;
    return *context;
  }
  CudaLibrary fake_{FAKE_CUDA};
};

TEST(Driver, ThatIsNotThereIsNamedWithItsRemedy) {
  const auto driver = Driver::Open("/nowhere/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(driver.error().message, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(driver.error().message, HasSubstr("--device nvidia.com/gpu=all"));
}

TEST(Driver, ThatIsAnotherLibraryIsRefused) {
  const auto driver = Driver::Open("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("has no cuInit"));
}

TEST_F(Gpu, TheDriverTellsItsDevices) {
  fake_.state().count = 2;
  fake_.state().devices[1].name = "Fake H200 MIG 1g.18gb";
  const auto driver = Driver::Open(FAKE_CUDA);
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_EQ(VersionText((*driver)->version()), "13.0");
  ASSERT_EQ((*driver)->devices().size(), 2u);
  EXPECT_EQ((*driver)->devices()[0].uuid, "GPU-10000000-0000-0000-0000-000000000000");
  EXPECT_EQ((*driver)->devices()[1].uuid, "MIG-11000000-0000-0000-0000-000000000000");
  EXPECT_EQ((*driver)->devices()[0].major, 9);
  EXPECT_EQ((*driver)->devices()[0].pci, "0000:65:00.0");
}

TEST_F(Gpu, ADriverThatDoesNotStartSaysWhatMendsIt) {
  for (const auto& [error, remedy] :
       {std::pair(cuda::kNoDevice, "CUDA_VISIBLE_DEVICES"), std::pair(cuda::kStubLibrary, "toolkit's stub"),
        std::pair(cuda::kDriverTooOld, "restart the machine")}) {
    fake_.state().init_error = error;
    const auto driver = Driver::Open(FAKE_CUDA);
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(driver.error().message, HasSubstr(remedy));
  }
}

TEST_F(Gpu, ThreadsWaitWithoutSpinning) {
  const ContextPtr context = Retain();
  const auto stream = Stream::Create(context, 1);
  ASSERT_TRUE(stream);
  EXPECT_EQ(fake_.state().context_flags, cuda::kBlockingSync);
  EXPECT_EQ(fake_.state().event_flags, cuda::kEventBlockingSync);
}

TEST_F(Gpu, MemoryBeyondTheDevicesIsRefusedAndTheDeviceLives) {
  fake_.state().devices[0].memory_total = fake_.state().devices[0].memory_used + 1000;
  const ContextPtr context = Retain();
  EXPECT_EQ(*context->FreeMemory(), 1000);
  EXPECT_TRUE(Memory::OnDevice(context, 900));  // and freed at once
  const auto memory = Memory::OnDevice(context, 1001);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(memory.error().message, HasSubstr("smaller batches"));
  EXPECT_TRUE(context->Alive());
}

TEST_F(Gpu, ALostDeviceStaysLost) {
  const ContextPtr context = Retain();
  const auto stream = Stream::Create(context, 1);
  fake_.state().stuck_after = 1;
  ASSERT_TRUE(stream->Mark(0));
  EXPECT_TRUE(stream->Wait(0));
  EXPECT_FALSE(stream->Wait(0));
  const Status alive = context->Alive();
  ASSERT_FALSE(alive);
  EXPECT_THAT(alive.error().message, HasSubstr("start it again"));
  fake_.state().stuck = 0;
}

TEST_F(Gpu, EventsTellTheTimeBetweenThem) {
  fake_.state().bytes_per_ms = 1000;
  const ContextPtr context = Retain();
  const auto stream = Stream::Create(context, 3);
  const auto memory = Memory::OnDevice(context, 4000);
  const auto host = Memory::Pinned(context, 4000);
  ASSERT_TRUE(stream && memory && host);
  ASSERT_TRUE(stream->Mark(0) && stream->Upload(*memory, host->host(), 4000) && stream->Mark(1) &&
              stream->Download(host->host(), *memory, 500) && stream->Mark(2) && stream->Wait(2));
  EXPECT_EQ(*stream->Between(0, 1), Duration(4ms));
  EXPECT_EQ(*stream->Between(1, 2), Duration(500us));
}

TEST_F(Gpu, AllIsGivenBack) {
  const int before = fake_.state().blocks;
  {
    const ContextPtr context = Retain();
    auto stream = Stream::Create(context, 4);
    auto kernel = Kernel::Load(context, NormalisePtx(), kNormaliseKernel);
    auto memory = Memory::OnDevice(context, 10), host = Memory::Pinned(context, 10);
    ASSERT_TRUE(stream && kernel && memory && host);
    Memory moved = *std::move(memory);
    EXPECT_EQ(fake_.state().events, 4);
    EXPECT_EQ(fake_.state().modules, 1);
  }
  EXPECT_EQ(fake_.state().events, 0);
  EXPECT_EQ(fake_.state().streams, 0);
  EXPECT_EQ(fake_.state().modules, 0);
  EXPECT_EQ(fake_.state().blocks, before);
  EXPECT_EQ(fake_.state().contexts, 0);
}

TEST_F(Gpu, AKernelThatIsNotInTheModuleIsNamed) {
  const auto kernel = Kernel::Load(Retain(), NormalisePtx(), "no_such");
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("no_such"));
}

TEST_F(Gpu, TheKernelPutsEachLevelInItsPlace) {
  constexpr unsigned kPixels = 5, kChannels = 3;
  const ContextPtr context = Retain();
  std::vector<unsigned char> levels(2 * kPixels * kChannels);
  std::iota(levels.begin(), levels.end(), 0);
  std::vector<float> table(kChannels * 256);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) * 0.25F;
  auto stream = Stream::Create(context, 1);
  auto kernel = Kernel::Load(context, NormalisePtx(), kNormaliseKernel);
  auto in = Memory::OnDevice(context, levels.size()), values = Memory::OnDevice(context, table.size() * 4),
       out = Memory::OnDevice(context, levels.size() * 4);
  ASSERT_TRUE(stream && kernel && in && values && out);
  ASSERT_TRUE(stream->Upload(*in, reinterpret_cast<const std::byte*>(levels.data()), levels.size()));
  ASSERT_TRUE(stream->Upload(*values, reinterpret_cast<const std::byte*>(table.data()), table.size() * 4));
  for (unsigned planar : {0U, 1U}) {
    cuda::Address a = in->address(), b = values->address(), c = out->address();
    unsigned pixels = kPixels, channels = kChannels;
    unsigned long long count = levels.size();
    ASSERT_TRUE(kernel->Launch(*stream, count, {&a, &b, &c, &pixels, &channels, &planar, &count}));
    std::vector<float> got(levels.size());
    ASSERT_TRUE(stream->Download(reinterpret_cast<std::byte*>(got.data()), *out, got.size() * 4) &&
                stream->Mark(0) && stream->Wait(0));
    for (unsigned picture = 0; picture < 2; ++picture) {
      for (unsigned pixel = 0; pixel < kPixels; ++pixel) {
        for (unsigned channel = 0; channel < kChannels; ++channel) {
          const unsigned from = (picture * kPixels + pixel) * kChannels + channel;
          const unsigned to = planar != 0 ? (picture * kChannels + channel) * kPixels + pixel : from;
          EXPECT_EQ(got[to], table[channel * 256 + levels[from]]);
        }
      }
    }
  }
}

// The assembler of NVIDIA's toolkit, where it is there, takes the kernel for the cards of eight years.
TEST(NormalisePtx, Assembles) {
  const std::string folder = ::testing::TempDir();
  if (std::system("command -v ptxas >/dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas in the PATH";
  std::ofstream(folder + "normalise.ptx") << NormalisePtx();
  for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_120"}) {
    const std::string command = "ptxas -arch=" + std::string(architecture) + " " + folder +
                                "normalise.ptx -o " + folder + "normalise.cubin";
    EXPECT_EQ(std::system(command.c_str()), 0) << architecture;
  }
}

}  // namespace
}  // namespace weir::gpu
