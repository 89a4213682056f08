#include "serve/shared_memory_registry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include "base/file.h"
#include "gpu/testing/cuda_library.h"

namespace weir::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

// A client's shared memory.
class Memory {
 public:
  explicit Memory(off_t size)
      : key_(fmt::format("/weir-regions-{}-{}", ::getpid(), ++made)),
        file_(::shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    EXPECT_TRUE(file_.valid());
    Resize(size);
  }
  ~Memory() { ::shm_unlink(key_.c_str()); }
  const std::string& key() const { return key_; }
  void Resize(off_t size) const { EXPECT_EQ(::ftruncate(file_.get(), size), 0); }
  void Write(const std::string& text, off_t at) const {
    EXPECT_EQ(::pwrite(file_.get(), text.data(), text.size(), at), static_cast<ssize_t>(text.size()));
  }
  std::string Read(size_t size, off_t at) const {
    std::string text(size, '\0');
    EXPECT_EQ(::pread(file_.get(), text.data(), size, at), static_cast<ssize_t>(size));
    return text;
  }

 private:
  static inline int made = 0;
  const std::string key_;
  const UniqueFd file_;
};

TEST(SharedMemoryRegistry, ReadsAndWritesAPart) {
  const Memory memory(8192);
  memory.Write("hello", 4100);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 4096, 4096}).has_value());
  EXPECT_EQ(regions.Read({"r", 4, 5})->text(), "hello");
  EXPECT_TRUE(regions.Write({"r", 100, 10}, Bytes::Copy("answer")).has_value());
  EXPECT_EQ(memory.Read(6, 4196), "answer");
}

TEST(SharedMemoryRegistry, LendsAPartInPlace) {
  const Memory memory(8192);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 4096, 4096}).has_value());
  const auto acquired = regions.Acquire({"r", 4, 5});
  ASSERT_TRUE(acquired.has_value());
  ASSERT_TRUE(regions.Unregister("r").has_value());  // it lives until the use is over
  memory.Write("hello", 4100);
  EXPECT_EQ(acquired->data.text(), "hello");
  EXPECT_TRUE(acquired->Check().has_value());
}

TEST(SharedMemoryRegistry, ReportsThatAcquiredMemoryHasBeenCutOff) {
  const Memory memory(8192);
  memory.Write("hello", 0);
  memory.Write("hello", 4096);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 0, 8192}).has_value());
  const auto acquired = regions.Acquire({"r", 0, 8192});
  memory.Resize(4096);
  EXPECT_EQ(acquired->data.text().substr(0, 5), "hello");
  EXPECT_TRUE(acquired->Check().has_value());
  EXPECT_EQ(acquired->data.text()[4096], '\0');
  EXPECT_THAT(acquired->Check().error().message, HasSubstr("cut off"));
  memory.Resize(8192);  // too late: it is not the client's memory any more
  EXPECT_EQ(regions.Read({"r", 0, 1}).error().code, ErrorCode::kInvalidArgument);
}

TEST(SharedMemoryRegistry, ReadsACopy) {
  const Memory memory(16);
  memory.Write("before", 0);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 0, 16}).has_value());
  const auto read = regions.Read({"r", 0, 6});
  memory.Write("after!", 0);
  EXPECT_EQ(read->text(), "before");
}

TEST(SharedMemoryRegistry, RefusesPartsThatDoNotLieWithin) {
  const Memory memory(4096);
  SharedMemoryRegistry regions;
  for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{0, 4097},
                                     {4096, 1},
                                     {1, 4096},
                                     {kMost, 1},
                                     {kMost - 10, 20},
                                     {1, kMost},
                                     {0, 0}}) {
    EXPECT_EQ(regions.Register(oip::Region{"bad", memory.key(), offset, size}).error().code,
              ErrorCode::kInvalidArgument)
        << offset << " " << size;
  }
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 1024, 1024}).has_value());
  for (const auto& [offset, size] :
       {std::pair<uint64_t, uint64_t>{0, 1025}, {1024, 1}, {kMost, 2}, {2, kMost}})
    EXPECT_EQ(regions.Read({"r", offset, size}).error().code, ErrorCode::kInvalidArgument);
}

TEST(SharedMemoryRegistry, TakesOnlyKeysOfSharedMemory) {
  SharedMemoryRegistry regions;
  for (const std::string& key :
       {std::string("/../etc/passwd"), std::string("/a/b"), std::string(), std::string("/"),
        std::string("/.."), std::string("/a\0b", 4), std::string(300, 'a')}) {
    EXPECT_EQ(regions.Register(oip::Region{"r", key, 0, 1}).error().code, ErrorCode::kInvalidArgument) << key;
  }
  EXPECT_EQ(regions.Register(oip::Region{"r", "/weir-there-is-none", 0, 1}).error().code,
            ErrorCode::kNotFound);
}

TEST(SharedMemoryRegistry, TakesANameOnce) {
  const Memory memory(16), other(16);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 0, 16}).has_value());
  const Status again = regions.Register(oip::Region{"r", other.key(), 0, 16});
  EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(again.error().message, Not(HasSubstr(memory.key())));
  ASSERT_TRUE(regions.Unregister("r").has_value());
  EXPECT_TRUE(regions.Register(oip::Region{"r", other.key(), 0, 16}).has_value());
}

TEST(SharedMemoryRegistry, ListsAndForgets) {
  const Memory memory(16);
  SharedMemoryRegistry regions;
  EXPECT_EQ(regions.Unregister("r").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(regions.List("r").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(regions.Register(oip::Region{"a", memory.key(), 0, 16}).has_value());
  ASSERT_TRUE(regions.Register(oip::Region{"b", memory.key(), 8, 8}).has_value());
  EXPECT_EQ(regions.List("")->size(), 2U);
  EXPECT_EQ(regions.List("b")->at(0).offset, 8U);
  EXPECT_TRUE(regions.Unregister("").has_value());
  EXPECT_TRUE(regions.List("")->empty());
  EXPECT_EQ(regions.Read({"a", 0, 1}).error().code, ErrorCode::kNotFound);
}

TEST(SharedMemoryRegistry, LivesThroughMemoryThatIsCutOff) {
  const Memory memory(1 << 20);
  SharedMemoryRegistry regions;
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 0, 1 << 20}).has_value());
  memory.Resize(4096);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(regions.Read({"r", 0, 1 << 20}).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(regions.Write({"r", 8192, 16}, Bytes::Copy("0123456789abcdef")).error().code,
              ErrorCode::kInvalidArgument);
  }
  // A later registration finds the remaining part again.
  EXPECT_EQ(regions.Read({"r", 0, 4096}).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(regions.Unregister("r").has_value());
  ASSERT_TRUE(regions.Register(oip::Region{"r", memory.key(), 0, 4096}).has_value());
  EXPECT_TRUE(regions.Read({"r", 0, 4096}).has_value());
}

// Bytes of address space of this process.
uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(SharedMemoryRegistry, MapsNoMoreThanTheRegion) {
  constexpr off_t kHuge = off_t{1} << 43;  // sparse: no memory behind it
  const Memory memory(kHuge);
  memory.Write("hello", kHuge - 5000);
  const uint64_t before = AddressSpace();
  SharedMemoryRegistry regions;
  for (int i = 0; i < 174; ++i) {
    const std::string name = fmt::format("r{}", i);
    ASSERT_TRUE(regions.Register(oip::Region{name, memory.key(), kHuge - 5000, 5000}).has_value());
  }
  EXPECT_LT(AddressSpace() - before, 64U << 20);
  EXPECT_EQ(regions.Read({"r173", 0, 5})->text(), "hello");
  const Status whole = regions.Register(oip::Region{"all", memory.key(), 0, kHuge});
  EXPECT_EQ(whole.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(whole.error().message, HasSubstr("--max-client-shm-mb"));
}

TEST(SharedMemoryRegistry, BoundsWhatAllOfThemMap) {
  const Memory memory(1 << 20);
  SharedMemoryRegistry regions(1 << 20);
  ASSERT_TRUE(regions.Register(oip::Region{"a", memory.key(), 0, 512 << 10}).has_value());
  ASSERT_TRUE(regions.Register(oip::Region{"b", memory.key(), 0, 512 << 10}).has_value());
  const Status third = regions.Register(oip::Region{"c", memory.key(), 4096, 1});
  EXPECT_EQ(third.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(third.error().message, HasSubstr("unregister some first"));
  {
    const auto acquired = regions.Acquire({"a", 0, 16});
    ASSERT_TRUE(regions.Unregister("a").has_value());
    EXPECT_FALSE(
        regions.Register(oip::Region{"c", memory.key(), 4096, 1}).has_value());  // it is still in use
  }
  EXPECT_TRUE(regions.Register(oip::Region{"c", memory.key(), 4096, 1}).has_value());
}

TEST(SharedMemoryRegistry, GivesBackWhatARefusedRegionTook) {
  const Memory memory(8192);
  SharedMemoryRegistry regions(8192);
  ASSERT_TRUE(regions.Register(oip::Region{"a", memory.key(), 0, 100}).has_value());
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(regions.Register(oip::Region{"a", memory.key(), 0, 100}).has_value());
  EXPECT_TRUE(regions.Register(oip::Region{"b", memory.key(), 100, 100}).has_value());
}

// With the driver that stands for NVIDIA's. Its handles name files.
class CudaRegionsTest : public ::testing::Test {
 protected:
  // Returns the region over a file of `bytes`, which stands for memory that a client's CUDA exported.
  oip::CudaRegion Exported(const std::string& name, size_t bytes) {
    const std::string path = fmt::format("/dev/shm/weir-{}-{}", ::getpid(), name);
    std::ofstream(path) << std::string(bytes, 'x');
    files_.push_back(path);
    std::string handle = "file:" + path;
    handle.resize(64);
    return {.name = name, .handle = handle, .device = 0, .byte_size = bytes};
  }
  std::string Contents(size_t file) const { return *ReadTextFile(files_[file]); }
  void TearDown() override {
    for (const std::string& path : files_) ::unlink(path.c_str());
  }

  gpu::CudaLibrary fake_{FAKE_CUDA};
  std::vector<std::string> files_;
  SharedMemoryRegistry regions_{SharedMemoryRegistry::kDefaultMaxBytes, *gpu::Driver::Open(FAKE_CUDA)};
};

TEST_F(CudaRegionsTest, AreReadAndWritten) {
  ASSERT_TRUE(regions_.Register(Exported("r", 100)));
  EXPECT_TRUE(regions_.has_gpu());
  ASSERT_TRUE(regions_.Write({"r", 10, 20}, Bytes::Copy("answer")));
  EXPECT_EQ(Contents(0).substr(8, 10), "xxanswerxx");
  EXPECT_EQ(regions_.Read({"r", 9, 8})->text(), "xanswerx");
  const auto acquired = regions_.Acquire({"r", 10, 6});
  EXPECT_EQ(acquired->data.text(), "answer");
  EXPECT_TRUE(acquired->Check());
  EXPECT_EQ(regions_.Read({"r", 90, 11}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(CudaRegionsTest, ShareTheirNamesWithThoseOfTheSystem) {
  const Memory memory(16);
  ASSERT_TRUE(regions_.Register(Exported("a", 16)));
  EXPECT_EQ(regions_.Register(oip::Region{"a", memory.key(), 0, 16}).error().code,
            ErrorCode::kInvalidArgument);
  ASSERT_TRUE(regions_.Register(oip::Region{"b", memory.key(), 0, 16}));
  EXPECT_EQ(regions_.ListCuda("").size(), 1U);
  EXPECT_EQ(regions_.ListCuda("a").front().byte_size, 16U);
  EXPECT_TRUE(regions_.ListCuda("b").empty());
  EXPECT_EQ(regions_.List("")->size(), 1U);
  EXPECT_FALSE(regions_.List("a"));
  ASSERT_TRUE(regions_.Unregister(""));
  EXPECT_TRUE(regions_.Has("a"));
  regions_.UnregisterCuda("b");
  regions_.UnregisterCuda("a");
  EXPECT_FALSE(regions_.Has("a"));
  EXPECT_EQ(fake_.state().blocks, 0);
  EXPECT_EQ(fake_.state().streams, 0);
  EXPECT_EQ(fake_.state().contexts, 0);
}

TEST_F(CudaRegionsTest, AreRefusedWithTheReason) {
  const auto refused = [&](const oip::CudaRegion& region) {
    const Status status = regions_.Register(region);
    EXPECT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    return status.error().message;
  };
  const oip::CudaRegion good = Exported("r", 16);
  oip::CudaRegion bad = good;
  bad.handle = "short";
  EXPECT_THAT(refused(bad), HasSubstr("cudaIpcGetMemHandle"));
  bad.handle = std::string(64, '?');
  EXPECT_THAT(refused(bad), HasSubstr("handle of another process's memory"));
  bad = good;
  bad.byte_size = 17;
  EXPECT_THAT(refused(bad), HasSubstr("has 16 bytes, fewer than 17"));
  bad = good;
  for (const int64_t device : {-1, 1}) {
    bad.device = device;
    EXPECT_THAT(refused(bad), HasSubstr("this server sees device 0 alone"));
  }
  bad = good;
  bad.byte_size = 0;
  EXPECT_THAT(refused(bad), HasSubstr("byte_size is 0"));
  SharedMemoryRegistry without;
  EXPECT_FALSE(without.has_gpu());
  EXPECT_EQ(without.Register(good).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(fake_.state().blocks, 0);
}

}  // namespace
}  // namespace weir::serve
