// A sealed file of identities: never changed, written whole, its codes in memory and its rows on storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "base/error.h"
#include "base/file.h"
#include "identity/disk.h"
#include "identity/kernels.h"
#include "identity/lists.h"
#include "identity/rows.h"
#include "identity/team.h"

namespace weir::identity {

// How look-ups read the rows that are ranked again.
enum class RowAccess {
  kMap,     // from a mapping: the page cache keeps what was read
  kDirect,  // O_DIRECT reads through io_uring, all of a look-up at once: latency does not depend on the cache
  kMemory,  // from memory, read when the file is opened
};
inline constexpr Choices<RowAccess, 3> kRowAccesses{
    {{RowAccess::kMap, "map"}, {RowAccess::kDirect, "direct"}, {RowAccess::kMemory, "memory"}}};

// The sizes of a file and the places of its sections, in bytes. The file is, in this order:
//   the header, in a page of its own with a checksum
//   resident sections: begins of lists (u64), centres (int8), their scales (f32), factors (f32), codes
//   records of rows, `stride` bytes each: values (int8), scale (f32), length of the name (u8), the name,
//   zeros, and a checksum (u32) of the bytes before it and of the row's number;
//   checksums (u64) of the resident sections, one for each MiB.
// Rows lie in the order of their lists. Factors and codes have slots for whole groups of 32 rows of each
// list. Numbers are little endian; checksums are XXH3.
struct SegmentLayout {
  size_t dimension = 0;
  int bits = 1;
  uint64_t rows = 0;
  uint32_t lists = 1;
  uint64_t slots = 0;
  uint32_t name_bytes = 0;  // of the longest name
  uint32_t stride = 0;
  uint64_t begins = 0, centres = 0, scales = 0, factors = 0, codes = 0, records = 0, checksums = 0, end = 0;

  static SegmentLayout Of(size_t dimension, int bits, uint64_t rows, uint32_t lists, uint64_t slots,
                          uint32_t name_bytes);
  CodeLayout code() const { return {dimension, bits}; }
  uint64_t resident_bytes() const { return records - begins; }
};

// Zeroed memory in large pages where the system gives them. Move-only; one owner.
class ResidentMemory {
 public:
  static Result<ResidentMemory> Allocate(size_t size);
  ResidentMemory() = default;
  ResidentMemory(ResidentMemory&& other) noexcept;
  ResidentMemory& operator=(ResidentMemory&& other) noexcept;
  ~ResidentMemory();
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Returns the row of a record. kCorrupt where it is damaged or not of row `number`.
Result<RowView> ParseRecord(const std::byte* record, uint64_t number, const SegmentLayout& layout);

// An open file. Threads: any.
class Segment final : public RowSource {
 public:
  struct Options {
    RowAccess access = RowAccess::kMap;
    uint64_t owner = 0;  // a hash of the index's model and dimension, which the file must have
  };
  // Checks the header, the sizes, and the checksums of the resident sections; rows are checked when they are
  // read. kCorrupt says which is wrong; kUnsupported for a file of another version, and where the file system
  // has no O_DIRECT.
  static Result<std::shared_ptr<const Segment>> Open(const std::string& path, const Options& options);
  // The same for a file that lies in memory, which is copied.
  static Result<std::shared_ptr<const Segment>> FromBytes(std::span<const std::byte> bytes, uint64_t owner);
  Segment(const Segment&) = delete;
  ~Segment() override;

  const SegmentLayout& layout() const { return layout_; }
  const std::string& path() const { return path_; }
  RowAccess access() const { return access_; }
  const std::shared_ptr<const Lists>& lists() const { return lists_; }
  uint64_t list_begin(size_t list) const { return begins()[list]; }
  // Returns the codes of a list, for a scan.
  ScanJob Job(size_t list, uint32_t segment) const;
  size_t resident_bytes() const { return layout_.resident_bytes(); }

  uint64_t rows() const override { return layout_.rows; }
  Result<RowView> Row(uint64_t row) const override;  // from memory or the mapping
  std::optional<uint32_t> ListOf(uint64_t row, const void* lists) const override;
  const std::byte* record(uint64_t row) const { return records_ + row * layout_.stride; }
  int direct_fd() const { return direct_.get(); }  // kDirect only

  // Reads every row. kCorrupt names the first that is damaged, kCancelled after `stop`.
  Status VerifyRows(const std::stop_token& stop) const;

 private:
  Status VerifyNumbers() const;
  using Reader = std::function<Status(uint64_t offset, std::span<std::byte> to)>;
  Segment() = default;
  Status Load(const Reader& read, uint64_t file_bytes, uint64_t owner);
  const uint64_t* begins() const;

  std::string path_;
  RowAccess access_ = RowAccess::kMap;
  SegmentLayout layout_;
  ResidentMemory resident_, row_memory_;
  std::shared_ptr<const Lists> lists_;
  std::vector<uint64_t> slot_begins_;  // of each list
  UniqueFd fd_, direct_;
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  const std::byte* records_ = nullptr;
};

// A row of one of several sources.
struct RowId {
  uint64_t source : 16, row : 48;
};

struct SegmentPlan {
  int bits = 1;
  uint64_t owner = 0;
  std::shared_ptr<const Lists> lists;
  std::vector<const RowSource*> sources;
  std::vector<RowId> rows;  // which of them are written
};
// Writes a file of `plan.rows` and waits for the disk; the file has its name only when it is whole.
Status WriteSegment(const std::string& path, const SegmentPlan& plan, Disk& disk, Team& team);

}  // namespace weir::identity
