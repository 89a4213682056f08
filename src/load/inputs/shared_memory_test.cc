#include "load/inputs/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace weir::load {
namespace {

infer::Request RequestOf(const std::string& text) {
  return {.model = "m",
          .inputs = {{.name = "x",
                      .dtype = infer::DType::kUint8,
                      .shape = {1, static_cast<int64_t>(text.size())},
                      .data = Bytes::Copy(text)}}};
}

infer::ModelInfo Model(infer::DType output = infer::DType::kFp32) {
  return {.name = "m", .outputs = {{.name = "y", .dtype = output, .shape = {-1, 4}}}, .max_batch = 8};
}

TEST(SharedMemory, IsSeenUnderItsKeyUntilItEnds) {
  std::string key;
  {
    auto memory = SharedMemory::Create(100);
    ASSERT_TRUE(memory.has_value());
    std::memcpy((*memory)->data(), "weir", 4);
    key = (*memory)->key();
    const int fd = shm_open(key.c_str(), O_RDONLY, 0);
    ASSERT_GE(fd, 0);
    char seen[4] = {};
    EXPECT_EQ(pread(fd, seen, 4, 0), 4);
    EXPECT_EQ(std::string_view(seen, 4), "weir");
    close(fd);
  }
  EXPECT_EQ(shm_open(key.c_str(), O_RDONLY, 0), -1);
}

TEST(ShareRequests, LaysEveryInputOnAMultipleOf64) {
  const auto shared = ShareRequests({RequestOf("abc"), RequestOf("defg")}, Model(), 2, 0, "r");
  ASSERT_TRUE(shared.has_value());
  ASSERT_EQ(shared->forms.size(), 2u);
  const infer::RegionPart& second = *shared->forms[1].input_regions[0];
  EXPECT_EQ(second.region, "r-in");
  EXPECT_EQ(second.offset, 64u);
  EXPECT_EQ(second.byte_size, 4u);
  EXPECT_EQ(std::memcmp(shared->inputs->data() + 64, "defg", 4), 0);
}

TEST(ShareRequests, GivesEachRequestItsOwnRoomForOutputs) {
  const auto shared = ShareRequests({RequestOf("a"), RequestOf("b")}, Model(), 2, 0, "r");
  ASSERT_TRUE(shared.has_value());
  const infer::RegionPart& second = shared->forms[1].output_regions.at("y");
  EXPECT_EQ(second.byte_size, 2 * 4 * sizeof(float));
  EXPECT_EQ(second.offset, 64u);
  EXPECT_EQ(shared->requests[1].outputs, std::vector<std::string>{"y"});
}

TEST(ShareRequests, SendsOutputsOfUnknownSize) {
  const auto shared = ShareRequests({RequestOf("a")}, Model(infer::DType::kBytes), 1, 0, "r");
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(shared->outputs, nullptr);
  EXPECT_TRUE(shared->forms[0].output_regions.empty());
  const auto told = ShareRequests({RequestOf("a")}, Model(infer::DType::kBytes), 1, 100, "r");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->forms[0].output_regions.at("y").byte_size, 100u);
}

TEST(ShareRequests, TakesAsManyAsFitAndRefusesOneThatDoesNot) {
  const std::string third(kMostSharedBytes / 3, 'a');
  const auto some = ShareRequests({RequestOf(third), RequestOf(third), RequestOf(third), RequestOf(third)},
                                  Model(), 1, 0, "r");
  ASSERT_TRUE(some.has_value());
  EXPECT_EQ(some->requests.size(), 2u);  // each rounded up to 64
  EXPECT_FALSE(
      ShareRequests({RequestOf(std::string(kMostSharedBytes + 1, 'a'))}, Model(), 1, 0, "r").has_value());
}

}  // namespace
}  // namespace weir::load
