// Any bytes as a sealed file of identities, and as the contents of one whose checksums are right, which no
// mutation would hit: read without a crash, and searched where they are whole.
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "identity/manifest.h"
#include "identity/search.h"

namespace {

using namespace weir::identity;

constexpr size_t kPage = 4096, kBlock = size_t{1} << 20;
constexpr char kMagic[] = "WEIRID02";

// What follows the magic number in the header.
struct Sizes {
  uint32_t dimension, bits;
  uint64_t rows, slots;
  uint32_t lists, name_bytes;
  uint64_t owner, table_checksum;
};

void ReadAndSearch(std::span<const std::byte> bytes) {
  const auto segment = Segment::FromBytes(bytes, 0);
  if (!segment) return;
  const auto& layout = (*segment)->layout();
  CHECK(layout.end == bytes.size());
  if (!(*segment)->VerifyRows({})) return;
  Team team(1);
  const std::vector<float> values(layout.dimension, 1);
  const SearchQuery query = MakeQuery(QuantiseRotated(values), layout.code());
  const SegmentUse use{*segment, layout.lists, 10};
  CHECK(FindCandidates(std::span(&query, 1), std::span(&use, 1), team).front().size() <= 10);
}

// The file of these sizes. Its resident sections and its records are `contents`, again and again.
std::vector<std::byte> MakeFile(Sizes sizes, std::span<const std::byte> contents) {
  std::vector<uint64_t> begins;
  if (sizes.owner % 4 != 0 && sizes.lists > 0) {  // equal lists, which the reader accepts
    sizes.slots = 0;
    for (uint64_t list = 0; list <= sizes.lists; ++list) {
      begins.push_back(sizes.rows * list / sizes.lists);
      if (list > 0) sizes.slots += (begins[list] - begins[list - 1] + kGroup - 1) / kGroup * kGroup;
    }
  }
  const SegmentLayout layout = SegmentLayout::Of(sizes.dimension, static_cast<int>(sizes.bits), sizes.rows,
                                                 sizes.lists, sizes.slots, sizes.name_bytes);
  std::vector<std::byte> file(layout.end);
  for (size_t at = kPage; at < file.size() && !contents.empty(); at += contents.size())
    std::copy_n(contents.begin(), std::min(contents.size(), file.size() - at),
                file.begin() + static_cast<ptrdiff_t>(at));
  std::ranges::copy(std::as_bytes(std::span(begins)), file.begin() + static_cast<ptrdiff_t>(layout.begins));
  for (uint64_t row = 0; row < layout.rows; ++row) {
    std::byte* const record = file.data() + layout.records + row * layout.stride;
    const auto check = static_cast<uint32_t>(XXH3_64bits(record, layout.stride - 4) + row);
    std::memcpy(record + layout.stride - 4, &check, sizeof(check));
  }
  std::vector<uint64_t> table;
  for (size_t at = 0; at < layout.resident_bytes(); at += kBlock)
    table.push_back(XXH3_64bits(file.data() + kPage + at, std::min(kBlock, layout.resident_bytes() - at)));
  std::ranges::copy(std::as_bytes(std::span(table)), file.begin() + static_cast<ptrdiff_t>(layout.checksums));
  sizes.owner = 0;
  sizes.table_checksum = XXH3_64bits(table.data(), table.size() * sizeof(uint64_t));
  std::memcpy(file.data(), kMagic, 8);
  std::memcpy(file.data() + 8, &sizes, sizeof(sizes));
  const uint64_t check = XXH3_64bits(file.data(), kPage - 8);
  std::memcpy(file.data() + kPage - 8, &check, sizeof(check));
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  ReadAndSearch(bytes);
  Sizes sizes;
  if (size < sizeof(sizes)) return 0;
  std::memcpy(&sizes, data, sizeof(sizes));
  // Small ones, which take no time to fill. The reader has to refuse some of them.
  sizes.dimension %= 70;
  sizes.bits %= 6;
  sizes.rows %= 300;
  sizes.slots %= 700;
  sizes.lists %= 20;
  sizes.name_bytes %= 300;
  ReadAndSearch(MakeFile(sizes, bytes.subspan(sizeof(sizes))));
  return 0;
}
