#include "identity/segment.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "identity/disk.h"
#include "identity/index.h"
#include "identity/lists.h"
#include "identity/made.h"
#include "identity/team.h"

namespace weir::identity {
namespace {

// The bytes of a sealed file, and the index that it belongs to.
struct Sealed {
  std::string bytes;
  uint64_t owner = 0;
};

Sealed MakeSealed() {
  const std::string folder = ::testing::TempDir() + "sealed-" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(Index::Create(folder, {.dimension = 16}));
  Sealed sealed;
  {
    const auto index = Index::Open(folder, {.access = Index::Access::kWrite}).value();
    const MadeIdentities made({.dimension = 16, .intrinsic = 0, .seed = 7});
    std::vector<Enrolment> rows;
    for (uint64_t i = 0; i < 40; ++i) rows.push_back({"person " + std::to_string(i), made.Vector(i)});
    EXPECT_TRUE(index->Enrol(rows));
    EXPECT_TRUE(index->Seal(Index::SealScope::kAll));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".identities") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    sealed.bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove_all(folder);
  constexpr size_t kOwnerAt = 40;
  std::memcpy(&sealed.owner, sealed.bytes.data() + kOwnerAt, sizeof(sealed.owner));
  return sealed;
}

// Opens the bytes and reads every row.
Status ReadAll(const std::string& bytes, uint64_t owner) {
  const auto segment = TRY(Segment::FromBytes(std::as_bytes(std::span(bytes)), owner));
  return segment->VerifyRows({});
}

// A file whose checksums hold: it was written so.
TEST(Segment, HasNoNumberThatIsNone) {
  const MadeIdentities made({.dimension = 16, .intrinsic = 0, .seed = 7});
  const Rotation rotation(16);
  VectorSample sample;
  sample.dimension = 16;
  TailBlock block(16);
  SegmentPlan plan{.sources = {&block}};
  for (uint64_t i = 0; i < 8; ++i) {
    QuantisedVector vector = Quantise(made.Vector(i), rotation).value();
    sample.values.insert(sample.values.end(), vector.values.begin(), vector.values.end());
    sample.scales.push_back(vector.scale);
    if (i == 5) vector.scale = std::numeric_limits<float>::quiet_NaN();
    block.Set(i, "person", vector);
    plan.rows.push_back({.source = 0, .row = static_cast<uint32_t>(i)});
  }
  Team team(1);
  Disk disk;
  plan.lists = TrainLists(sample, 1, 1, team);
  const std::string path = ::testing::TempDir() + "none-" + std::to_string(::getpid());
  ASSERT_TRUE(WriteSegment(path, plan, disk, team));
  const auto segment = Segment::Open(path, {RowAccess::kMap, 0});
  ASSERT_TRUE(segment);
  EXPECT_EQ((*segment)->VerifyRows({}).error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE((*segment)->Row(5));
  EXPECT_TRUE((*segment)->Row(4));
}

TEST(Segment, IsReadWhole) {
  const Sealed sealed = MakeSealed();
  ASSERT_GT(sealed.bytes.size(), 8192U);
  EXPECT_TRUE(ReadAll(sealed.bytes, sealed.owner));
  EXPECT_EQ(ReadAll(sealed.bytes, sealed.owner + 1).error().code, ErrorCode::kCorrupt) << "of another index";
}

TEST(Segment, EveryFlippedByteOfEverySectionIsFound) {
  const Sealed sealed = MakeSealed();
  std::string damaged = sealed.bytes;
  for (size_t at = 0; at < damaged.size(); ++at) {
    const auto flip = static_cast<char>(1 << at % 8);
    damaged[at] = static_cast<char>(damaged[at] ^ flip);
    const Status read = ReadAll(damaged, sealed.owner);
    ASSERT_FALSE(read) << "byte " << at << " of " << damaged.size();
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
    damaged[at] = static_cast<char>(damaged[at] ^ flip);
  }
}

TEST(Segment, EveryWrongSizeIsFound) {
  const Sealed sealed = MakeSealed();
  for (size_t size = 0; size < sealed.bytes.size(); ++size)
    ASSERT_FALSE(ReadAll(sealed.bytes.substr(0, size), sealed.owner)) << "cut to " << size;
  for (const size_t more : {1U, 7U, 8U, 4096U, 100'000U})
    EXPECT_FALSE(ReadAll(sealed.bytes + std::string(more, '\0'), sealed.owner)) << more << " bytes more";
}

TEST(Segment, TwoRecordsThatChangePlacesAreFound) {
  const Sealed sealed = MakeSealed();
  const auto layout =
      Segment::FromBytes(std::as_bytes(std::span(sealed.bytes)), sealed.owner).value()->layout();
  const auto record = [&](std::string& bytes, uint64_t row) {
    return bytes.begin() + static_cast<ptrdiff_t>(layout.records + row * layout.stride);
  };
  for (uint64_t other = 1; other < layout.rows; ++other) {
    std::string swapped = sealed.bytes;
    std::swap_ranges(record(swapped, 0), record(swapped, 1), record(swapped, other));
    const Status read = ReadAll(swapped, sealed.owner);
    ASSERT_FALSE(read) << other;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
  }
}

TEST(Segment, OfAnOlderVersionIsRefusedWithTheRemedy) {
  Sealed sealed = MakeSealed();
  constexpr size_t kVersionAt = 7, kHeaderChecksumAt = 4096 - 8;
  sealed.bytes[kVersionAt] = '1';
  const uint64_t check = XXH3_64bits(sealed.bytes.data(), kHeaderChecksumAt);
  std::memcpy(sealed.bytes.data() + kHeaderChecksumAt, &check, sizeof(check));
  const Status read = ReadAll(sealed.bytes, sealed.owner);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(read.error().message.contains("version 01")) << read.error().message;
  EXPECT_TRUE(read.error().message.contains("build the index again")) << read.error().message;
}

TEST(Segment, SectionsThatChangePlacesAreFound) {
  const Sealed sealed = MakeSealed();
  const auto layout =
      Segment::FromBytes(std::as_bytes(std::span(sealed.bytes)), sealed.owner).value()->layout();
  std::string swapped = sealed.bytes;
  const auto first = swapped.begin() + static_cast<ptrdiff_t>(layout.codes),
             second = swapped.begin() + static_cast<ptrdiff_t>(layout.factors);
  std::swap_ranges(second, second + 64, first);
  EXPECT_FALSE(ReadAll(swapped, sealed.owner));
}

}  // namespace
}  // namespace weir::identity
